/**
 * Records of the streams that come from inside a sandbox: entries of a directory (`list`), events of a watch. They pass
 * through the Edge untouched; whoever reads them takes nothing on trust. Layout: `node-runtime/launcher/PROTOCOL.md`.
 */
import { DsecError } from '../errors.ts';
import { textOfBytes } from './byte-path.ts';

export const FILE_TYPES = ['file', 'directory', 'symlink', 'fifo', 'socket', 'character-device', 'block-device'] as const;
export type FileType = (typeof FILE_TYPES)[number];

export type EntryRecord = {
  readonly name: string;
  readonly type: FileType;
  readonly size: number;
  readonly storedBytes: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly linkCount: number;
  readonly modifiedSeconds: number;
  readonly modifiedNanoseconds: number;
  readonly target: string | null;
};

export const EVENT_KINDS = ['watching', 'created', 'modified', 'removed', 'moved-from', 'moved-to', 'attributes', 'overflow', 'unwatched'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];
export type EventRecord = { readonly kind: EventKind; readonly isDirectory: boolean; readonly cookie: number; readonly name: string };

const ENTRY_BYTES = 56;
const EVENT_BYTES = 8;
/** A name and a link's target, or a path below a watched directory. */
const NAMES_BYTES_MAX = 2 * 4_096;
const DIRECTORY_FLAG = 0x8000;

const hostile = (what: string): never => {
  throw DsecError.of('MALFORMED_MESSAGE', `a record from the sandbox is not one: ${what}`);
};

/** Counters of the kernel are 64 bits wide; beyond 2⁵³ only their magnitude is of use. */
const readU64 = (view: Buffer, at: number): number => Math.min(Number(view.readBigUInt64LE(at)), Number.MAX_SAFE_INTEGER);

const readSeconds = (view: Buffer, at: number): number => {
  const seconds = Number(view.readBigInt64LE(at));
  return Number.isSafeInteger(seconds) ? seconds : hostile('time');
};

const pick = <T>(list: readonly T[], index: number, what: string): T => list[index] ?? hostile(what);

/** One whole entry record. */
export const readEntry = (bytes: Uint8Array): EntryRecord => {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < ENTRY_BYTES || view.readUInt32LE(0) !== view.byteLength) return hostile('length');
  const nameEnd = ENTRY_BYTES + view.readUInt16LE(4);
  if (nameEnd + view.readUInt16LE(6) !== view.byteLength) return hostile('lengths of the names');
  const type = pick(FILE_TYPES, view.readUInt8(8) - 1, 'type');
  return {
    name: textOfBytes(view.subarray(ENTRY_BYTES, nameEnd)),
    type,
    mode: view.readUInt32LE(12) & 0o7777,
    uid: view.readUInt32LE(16),
    gid: view.readUInt32LE(20),
    linkCount: view.readUInt32LE(24),
    modifiedNanoseconds: view.readUInt32LE(28) % 1_000_000_000,
    size: readU64(view, 32),
    storedBytes: readU64(view, 40),
    modifiedSeconds: readSeconds(view, 48),
    target: type === 'symlink' ? textOfBytes(view.subarray(nameEnd)) : null,
  };
};

const readEvent = (view: Buffer): EventRecord => {
  const kind = view.readUInt16LE(2);
  return {
    kind: pick(EVENT_KINDS, (kind & ~DIRECTORY_FLAG) - 1, 'kind of event'),
    isDirectory: (kind & DIRECTORY_FLAG) !== 0,
    cookie: view.readUInt32LE(4),
    name: textOfBytes(view.subarray(EVENT_BYTES)),
  };
};

type Layout<T> = { readonly headBytes: number; readonly lengthOf: (view: Buffer) => number; readonly read: (view: Buffer) => T };
const ENTRIES: Layout<EntryRecord> = { headBytes: ENTRY_BYTES, lengthOf: (view) => view.readUInt32LE(0), read: readEntry };
const EVENTS: Layout<EventRecord> = { headBytes: EVENT_BYTES, lengthOf: (view) => view.readUInt16LE(0), read: readEvent };

/** Cuts a byte stream into records; keeps what is not whole yet. */
class RecordReader<T> {
  readonly #layout: Layout<T>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(layout: Layout<T>) {
    this.#layout = layout;
  }

  take(chunk: Uint8Array): T[] {
    const all = Buffer.concat([this.#rest, chunk]);
    const records: T[] = [];
    let at = 0;
    while (all.byteLength - at >= this.#layout.headBytes) {
      const length = this.#layout.lengthOf(all.subarray(at));
      if (length < this.#layout.headBytes || length > this.#layout.headBytes + NAMES_BYTES_MAX) hostile('length');
      if (all.byteLength - at < length) break;
      records.push(this.#layout.read(all.subarray(at, at + length)));
      at += length;
    }
    this.#rest = all.subarray(at);
    return records;
  }

  /** Throws when the stream ended inside a record. */
  end(): void {
    if (this.#rest.byteLength > 0) hostile('cut short');
  }
}

export const entryReader = (): RecordReader<EntryRecord> => new RecordReader(ENTRIES);
export const eventReader = (): RecordReader<EventRecord> => new RecordReader(EVENTS);
export type { RecordReader };
