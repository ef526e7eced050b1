/** Archives made entry by entry, with what no honest tar writes: names that climb, links outside, raw attributes. */

export type ForgedEntry = {
  readonly name: string;
  readonly type?: keyof typeof TYPES;
  readonly link?: string;
  readonly body?: string;
  readonly uid?: number;
  /** Records of an extended header before it, or of one for all that follows when it is `global`. */
  readonly records?: Readonly<Record<string, string>>;
  /** Extended attributes, as POSIX archives carry them. */
  readonly xattrs?: Readonly<Record<string, Buffer>>;
};

const BLOCK = 512;
const TYPES = { file: '0', hard: '1', soft: '2', character: '3', block: '4', directory: '5', fifo: '6', label: 'V', global: 'g' } as const;
export const FORGED_SECONDS = 1_500_000_000;

export const forgeTar = (entries: readonly ForgedEntry[]): Buffer =>
  Buffer.concat([
    ...entries.flatMap((entry) => (entry.type === 'global' ? extendedHeader(entry, 'g') : [...extendedHeader(entry, 'x'), ...itself(entry)])),
    Buffer.alloc(2 * BLOCK),
  ]);

const itself = (entry: ForgedEntry): Buffer[] => [header(entry.name, TYPES[entry.type ?? 'file'], entry), padded(Buffer.from(entry.body ?? ''))];

const extendedHeader = ({ xattrs = {}, records: more = {} }: ForgedEntry, type: 'x' | 'g'): Buffer[] => {
  const records = [
    ...Object.entries(xattrs).map(([name, value]) => paxRecord(Buffer.concat([Buffer.from(`SCHILY.xattr.${name}=`), value]))),
    ...Object.entries(more).map(([key, value]) => paxRecord(Buffer.from(`${key}=${value}`))),
  ];
  if (records.length === 0) return [];
  const body = Buffer.concat(records);
  return [header('pax', type, {}, body.byteLength), padded(body)];
};

/** `<length> <text>\n`, where the length counts itself. */
const paxRecord = (text: Buffer): Buffer => {
  let length = text.byteLength + 3;
  while (String(length).length + 2 + text.byteLength !== length) length = String(length).length + 2 + text.byteLength;
  return Buffer.concat([Buffer.from(`${length} `), text, Buffer.from('\n')]);
};

const header = (name: string, type: string, entry: Partial<ForgedEntry>, size = Buffer.byteLength(entry.body ?? '')): Buffer => {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number): void => void block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at);
  block.write(name, 0);
  octal(0o755, 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(FORGED_SECONDS, 136, 12);
  block.write('        ', 148);
  block.write(type, 156);
  block.write(entry.link ?? '', 157);
  block.write('ustar\x0000', 257);
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return block;
};

const padded = (body: Buffer): Buffer => Buffer.concat([body, Buffer.alloc((BLOCK - (body.byteLength % BLOCK)) % BLOCK)]);
