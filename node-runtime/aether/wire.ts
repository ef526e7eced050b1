/**
 * Frames of the Edge's channel to Aether, as `launcher/PROTOCOL.md` and `wire.h` lay them down. Pure: bytes in, data out.
 *
 * What comes from Aether comes from inside a sandbox's process tree, so it is taken by fixed sizes only: a frame whose type
 * or length is not in the table below is hostile, and the reader says so instead of interpreting it.
 */
import { ExecId } from '#bus/ids.ts';
import { DsecError } from '#bus/errors.ts';
import { wireBytesOf } from '#bus/op/byte-path.ts';
import { AETHER_LIMITS } from './limits.ts';

export const HEADER_BYTES = 16;
const EXEC_ID_BYTES = 32;

export const REQUEST = { ping: 1, start: 2, stdin: 3, signal: 4, query: 5, resize: 6, window: 7, life: 8, dial: 9, clock: 10 } as const;

const FRAMES = {
  65: { name: 'pong', bytes: 0 },
  66: { name: 'started', bytes: 16 },
  67: { name: 'start-failed', bytes: 40 },
  68: { name: 'stdin-at', bytes: 8 },
  69: { name: 'signaled', bytes: 1 },
  70: { name: 'unknown', bytes: 0 },
  71: { name: 'error', bytes: 8 },
  72: { name: 'dialed', bytes: 4 },
  96: { name: 'progress', bytes: 96 },
  97: { name: 'exit', bytes: 112 },
} as const;

/** Longest frame that Aether sends; a reader never holds more of an unfinished one. */
export const LONGEST_FRAME_BYTES = HEADER_BYTES + 112;

/** Why bytes of a stream were dropped from some offset on. */
export type Dropped = 'limit' | 'released' | 'no-space';
/** The log holds the bytes from `discardedBytes` to `storedBytes`. */
export type StreamCounts = { readonly totalBytes: number; readonly storedBytes: number; readonly discardedBytes: number; readonly dropped: Dropped | null };
export type Progress = { readonly execId: ExecId; readonly startedAtMs: number; readonly stdout: StreamCounts; readonly stderr: StreamCounts };
export type EndReason = 'ended' | 'timeout' | 'oom' | 'killed';
export type Exit = Progress & {
  readonly endedAtMs: number;
  readonly waitStatus: number;
  readonly reason: EndReason;
  readonly pipesOpen: boolean;
  readonly oomKills: number;
};
export type StartFailure = 'user' | 'cwd' | 'not-found' | 'not-executable' | 'known' | 'pids' | 'no-space' | 'other' | 'busy';
export type Refusal = 'malformed' | 'unknown-exec' | 'stdin-gap' | 'stdin-busy' | 'stdin-closed';

export type Frame = { readonly id: number } & (
  | { readonly type: 'pong' | 'unknown' }
  | { readonly type: 'started'; readonly pid: number; readonly startedAtMs: number }
  | { readonly type: 'start-failed'; readonly failure: StartFailure; readonly errno: number; readonly execId: ExecId }
  | { readonly type: 'stdin-at'; readonly nextOffset: number }
  | { readonly type: 'signaled'; readonly delivered: boolean }
  | { readonly type: 'error'; readonly refusal: Refusal }
  | { readonly type: 'dialed'; readonly errno: number }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'exit'; readonly exit: Exit }
);

const FAILURES: readonly StartFailure[] = ['user', 'cwd', 'not-found', 'not-executable', 'known', 'pids', 'no-space', 'other', 'busy'];
const REFUSALS: readonly Refusal[] = ['malformed', 'unknown-exec', 'stdin-gap', 'stdin-busy', 'stdin-closed'];
const DROPS: readonly (Dropped | null)[] = [null, 'limit', 'released', 'no-space'];
const REASONS: readonly EndReason[] = ['ended', 'timeout', 'oom', 'killed'];

/** A frame that Aether would never send. */
export class HostileFrame extends Error {
  override readonly name = 'HostileFrame';
}

const pick = <T>(list: readonly T[], index: number, what: string): T => {
  const value = list[index];
  if (value === undefined) throw new HostileFrame(`no ${what} has the number ${index}`);
  return value;
};

const readU64 = (bytes: Buffer, at: number): number => {
  const value = bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
  if (!Number.isSafeInteger(value)) throw new HostileFrame('a number is out of range');
  return value;
};

const readExecId = (bytes: Buffer, at: number): ExecId => {
  const text = bytes.toString('latin1', at, at + EXEC_ID_BYTES).replace(/\0+$/, '');
  const parsed = ExecId.safeParse(text);
  if (!parsed.success) throw new HostileFrame('not an exec id');
  return parsed.data;
};

const readStream = (bytes: Buffer, at: number, dropped: number): StreamCounts => ({
  totalBytes: readU64(bytes, at),
  storedBytes: readU64(bytes, at + 8),
  discardedBytes: readU64(bytes, at + 16),
  dropped: pick(DROPS, dropped, 'reason for dropping'),
});

const readProgress = (bytes: Buffer, at: number): Progress => ({
  execId: readExecId(bytes, at),
  stdout: readStream(bytes, at + 32, bytes.readUInt8(at + 88)),
  stderr: readStream(bytes, at + 56, bytes.readUInt8(at + 89)),
  startedAtMs: readU64(bytes, at + 80),
});

const readExit = (bytes: Buffer, at: number): Exit => ({
  ...readProgress(bytes, at),
  endedAtMs: readU64(bytes, at + 96),
  waitStatus: bytes.readInt32LE(at + 104),
  reason: pick(REASONS, bytes.readUInt8(at + 108), 'reason'),
  pipesOpen: bytes.readUInt8(at + 109) !== 0,
  oomKills: bytes.readUInt16LE(at + 110),
});

/** An exit record file: the body of an EXIT frame. Undefined when it is not one. */
export const parseExitRecord = (record: Buffer): Exit | undefined => {
  try {
    return record.byteLength === FRAMES[97].bytes ? readExit(record, 0) : undefined;
  } catch (error) {
    if (error instanceof HostileFrame) return undefined;
    throw error;
  }
};

const parseBody = (type: keyof typeof FRAMES, id: number, bytes: Buffer, at: number): Frame => {
  switch (type) {
    case 65:
      return { type: 'pong', id };
    case 66:
      return { type: 'started', id, pid: bytes.readInt32LE(at), startedAtMs: readU64(bytes, at + 8) };
    case 67:
      return {
        type: 'start-failed',
        id,
        failure: pick(FAILURES, bytes.readUInt16LE(at) - 1, 'start failure'),
        errno: bytes.readInt32LE(at + 4),
        execId: readExecId(bytes, at + 8),
      };
    case 68:
      return { type: 'stdin-at', id, nextOffset: readU64(bytes, at) };
    case 69:
      return { type: 'signaled', id, delivered: bytes.readUInt8(at) !== 0 };
    case 70:
      return { type: 'unknown', id };
    case 71:
      return { type: 'error', id, refusal: pick(REFUSALS, bytes.readUInt16LE(at) - 1, 'refusal') };
    case 72:
      return { type: 'dialed', id, errno: bytes.readInt32LE(at) };
    case 96:
      return { type: 'progress', id, progress: readProgress(bytes, at) };
    case 97:
      return { type: 'exit', id, exit: readExit(bytes, at) };
  }
};

const isFrameType = (type: number): type is keyof typeof FRAMES => Object.hasOwn(FRAMES, type);

/**
 * Takes the frames out of `bytes`, in order, and returns how many bytes they were. Throws HostileFrame as soon as a header
 * says something that no frame has, before its body has come.
 */
export const takeFrames = (bytes: Buffer, take: (frame: Frame) => void): number => {
  let at = 0;
  while (bytes.byteLength - at >= HEADER_BYTES) {
    const length = bytes.readUInt32LE(at);
    const type = bytes.readUInt16LE(at + 4);
    if (!isFrameType(type) || FRAMES[type].bytes !== length) throw new HostileFrame(`no frame has type ${type} and ${length} bytes`);
    if (bytes.byteLength - at < HEADER_BYTES + length) break;
    take(parseBody(type, readU64(bytes, at + 8), bytes, at + HEADER_BYTES));
    at += HEADER_BYTES + length;
  }
  return at;
};

/** `key=value` strings, each ended by NUL. Values never hold a NUL: that would add a pair. */
const encodePairs = (pairs: Iterable<readonly [string, string | number]>): string => {
  let text = '';
  for (const [key, value] of pairs) {
    if (typeof value === 'string' && value.includes('\0')) throw DsecError.of('INVALID_ARGUMENT', `${key} holds a NUL byte; remove it`);
    text += `${key}=${value}\0`;
  }
  return text;
};

/** A request frame. `tail`: bytes after the pairs, with the empty string between them that START and STDIN have. */
export const encodeRequest = (type: number, id: number, pairs: Iterable<readonly [string, string | number]>, tail?: Uint8Array): Buffer => {
  const text = wireBytesOf(encodePairs(pairs) + (tail === undefined ? '' : '\0'));
  if (!text) throw DsecError.of('INVALID_ARGUMENT', 'a lone surrogate stands for no byte; give bytes that are no UTF-8 as U+DC80 to U+DCFF');
  const bodyBytes = text.byteLength + (tail?.byteLength ?? 0);
  if (bodyBytes > AETHER_LIMITS.frameBodyBytes) {
    throw DsecError.of(
      'PAYLOAD_TOO_LARGE',
      `arguments, environment and input make ${bodyBytes} bytes, more than ${AETHER_LIMITS.frameBodyBytes}; use a file or stdin in parts`,
    );
  }
  const frame = Buffer.allocUnsafe(HEADER_BYTES + bodyBytes);
  frame.writeUInt32LE(bodyBytes, 0);
  frame.writeUInt16LE(type, 4);
  frame.writeUInt16LE(0, 6);
  frame.writeUInt32LE(id % 2 ** 32, 8);
  frame.writeUInt32LE(Math.floor(id / 2 ** 32), 12);
  frame.set(text, HEADER_BYTES);
  if (tail !== undefined) frame.set(tail, HEADER_BYTES + text.byteLength);
  return frame;
};
