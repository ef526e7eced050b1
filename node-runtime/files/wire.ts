/**
 * Frames of a files connection, as `launcher/PROTOCOL.md` and `aether/files_wire.h` lay them down. Pure: bytes in, data out.
 *
 * What comes from a worker comes from inside a sandbox: a frame that is not in the table, or longer than its row allows, is
 * hostile, and its records are read with bounds or not at all.
 */
import { DsecError } from '#bus/errors.ts';
import { textOfBytes } from '#bus/op/byte-path.ts';
import { type EntryRecord, readEntry } from '#bus/op/file-records.ts';
import { OMISSIONS, type Omission } from '#bus/op/files.ts';
import { FILES_LIMITS } from './limits.ts';

const HEADER_BYTES = 16;
const PATH_BYTES = 4_096;

export const FILE_REQUEST = {
  files: 16,
  stat: 32,
  list: 33,
  read: 34,
  write: 35,
  append: 36,
  mkdir: 37,
  move: 38,
  remove: 39,
  pack: 40,
  unpack: 41,
  watch: 42,
  chunk: 48,
  commit: 49,
} as const;
export type FileRequest = Exclude<keyof typeof FILE_REQUEST, 'files' | 'chunk' | 'commit'>;

const FRAMES: Readonly<Record<number, { readonly least: number; readonly most: number }>> = {
  80: { least: 0, most: 0 },
  81: { least: 56, most: 56 + PATH_BYTES },
  82: { least: 1, most: 262_144 },
  83: { least: 24, most: 24 },
  84: { least: 8, most: 8 + PATH_BYTES },
  85: { least: 4, most: 4 + PATH_BYTES },
  86: { least: 16, most: 16 },
};

export type FailureReason = 'errno' | 'not-regular' | 'no-user' | 'unsafe-entry' | 'bad-archive' | 'no-process' | 'malformed';
const REASONS: readonly FailureReason[] = ['errno', 'not-regular', 'no-user', 'unsafe-entry', 'bad-archive', 'no-process', 'malformed'];

export type Failure = { readonly reason: FailureReason; readonly errno: number; readonly path: string };
/** What was done before a failure, and stays. */
export type DoneBefore = { readonly bytes: number; readonly entries: number };
export type WorkerFrame =
  | { readonly type: 'ready' }
  | { readonly type: 'entry'; readonly entry: EntryRecord }
  | { readonly type: 'data'; readonly bytes: Buffer }
  | { readonly type: 'end'; readonly bytes: number; readonly entries: number; readonly omitted: number }
  | { readonly type: 'partial'; readonly done: DoneBefore }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'omitted'; readonly omission: Omission };

/** A frame that no worker sends. */
export class HostileWorker extends Error {
  override readonly name = 'HostileWorker';
}

const pick = <T>(list: readonly T[], index: number, what: string): T => {
  const value = list[index];
  if (value === undefined) throw new HostileWorker(`no ${what} has the number ${index}`);
  return value;
};
const readCount = (body: Buffer, at: number): number => Math.min(Number(body.readBigUInt64LE(at)), Number.MAX_SAFE_INTEGER);

const parse = (type: number, body: Buffer): WorkerFrame => {
  switch (type) {
    case 80:
      return { type: 'ready' };
    case 81:
      return { type: 'entry', entry: readEntry(body) };
    case 82:
      return { type: 'data', bytes: body };
    case 83:
      return { type: 'end', bytes: readCount(body, 0), entries: readCount(body, 8), omitted: readCount(body, 16) };
    case 84: {
      const reason = pick(REASONS, body.readUInt16LE(0), 'reason');
      return { type: 'failed', failure: { reason, errno: body.readInt32LE(4), path: textOfBytes(body.subarray(8)) } };
    }
    case 86:
      return { type: 'partial', done: { bytes: readCount(body, 0), entries: readCount(body, 8) } };
    case 85:
      return { type: 'omitted', omission: { what: pick(OMISSIONS, body.readUInt16LE(0) - 1, 'omission'), path: textOfBytes(body.subarray(4)) } };
    default:
      throw new HostileWorker(`no frame has type ${type}`);
  }
};

/** Collects what a socket gives into frames; a chunk of data is copied once. */
export class FrameReader {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #body: Buffer | undefined;
  #bodyBytes = 0;

  /** Throws HostileWorker as soon as a header says something that no frame has. */
  take(bytes: Buffer, onFrame: (frame: WorkerFrame) => void): void {
    for (let at = 0; at < bytes.byteLength; ) {
      at += this.#body ? this.#fillBody(bytes, at) : this.#fillHeader(bytes, at);
      if (!this.#isWhole()) continue;
      const type = this.#header.readUInt16LE(4);
      const body = this.#body as Buffer;
      this.#body = undefined;
      this.#headerBytes = 0;
      onFrame(parse(type, body));
    }
  }

  #isWhole(): boolean {
    return this.#body !== undefined && this.#bodyBytes === this.#body.byteLength;
  }

  #fillHeader(bytes: Buffer, at: number): number {
    const copied = bytes.copy(this.#header, this.#headerBytes, at, at + HEADER_BYTES - this.#headerBytes);
    this.#headerBytes += copied;
    if (this.#headerBytes < HEADER_BYTES) return copied;
    const length = this.#header.readUInt32LE(0);
    const row = FRAMES[this.#header.readUInt16LE(4)];
    if (!row || length < row.least || length > row.most) throw new HostileWorker(`no frame has type ${this.#header.readUInt16LE(4)} and ${length} bytes`);
    this.#body = Buffer.allocUnsafeSlow(length);
    this.#bodyBytes = 0;
    return copied;
  }

  #fillBody(bytes: Buffer, at: number): number {
    const body = this.#body as Buffer;
    const copied = bytes.copy(body, this.#bodyBytes, at, at + body.byteLength - this.#bodyBytes);
    this.#bodyBytes += copied;
    return copied;
  }
}

const header = (type: number, id: number, length: number): Buffer => {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt32LE(id, 8);
  return bytes;
};

export type Pairs = Readonly<Record<string, string | number | boolean | Uint8Array | undefined>>;

/** `key=value` strings, each ended by NUL; paths as bytes. What is undefined is left out. */
export const encodeRequest = (type: number, id: number, pairs: Pairs): Buffer => {
  const parts: Uint8Array[] = [];
  for (const [key, value] of Object.entries(pairs)) {
    if (value === undefined) continue;
    parts.push(
      Buffer.from(`${key}=`),
      typeof value === 'object' ? value : Buffer.from(typeof value === 'boolean' ? (value ? '1' : '0') : String(value)),
      Buffer.of(0),
    );
  }
  const length = parts.reduce((n, part) => n + part.byteLength, 0);
  if (length > FILES_LIMITS.requestBytes) throw DsecError.of('PAYLOAD_TOO_LARGE', `names of ${length} bytes; at most ${FILES_LIMITS.requestBytes} are carried`);
  return Buffer.concat([header(type, id, length), ...parts]);
};

export const chunkHeader = (id: number, length: number): Buffer => header(FILE_REQUEST.chunk, id, length);
export const commitFrame = (id: number): Buffer => header(FILE_REQUEST.commit, id, 0);
