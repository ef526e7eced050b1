/** Frames between Edge and launcher: see PROTOCOL.md. Pure. */
import { LAUNCHER_LIMITS } from './limits.ts';

export const REQUEST = {
  hello: 1,
  mountImage: 2,
  umountImage: 3,
  listImages: 4,
  launch: 5,
  destroy: 6,
  freeze: 7,
  thaw: 8,
  stats: 9,
  list: 10,
  forget: 11,
  quit: 12,
  reclaim: 13,
  prefetch: 14,
  swapOn: 15,
  swapOff: 16,
} as const;
export const ANSWER = { ok: 64, error: 65 } as const;

const HEADER_BYTES = 16;

export type Pair = readonly [key: string, value: string | number];
export type Frame = { readonly type: number; readonly id: number; readonly pairs: readonly (readonly [string, string])[] };

/** Throws a RangeError on what cannot be written: a NUL in a value, or a body that is too long. */
export const encodeFrame = (type: number, id: number, pairs: readonly Pair[]): Buffer => {
  for (const [key, value] of pairs) if (String(value).includes('\0')) throw new RangeError(`${key} holds a NUL`);
  const body = Buffer.from(pairs.map(([key, value]) => `${key}=${value}\0`).join(''), 'utf8');
  if (body.length > LAUNCHER_LIMITS.frameBodyBytes) throw new RangeError(`a request of ${body.length} bytes does not fit into a frame`);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(body.length, 0);
  header.writeUInt16LE(type, 4);
  header.writeBigUInt64LE(BigInt(id), 8);
  return Buffer.concat([header, body]);
};

/** Takes the whole frames off the front of `bytes`. Throws a RangeError on a frame that cannot be one of the launcher's. */
export const takeFrames = (bytes: Buffer): { readonly frames: readonly Frame[]; readonly rest: Buffer } => {
  const frames: Frame[] = [];
  let at = 0;
  while (bytes.length - at >= HEADER_BYTES) {
    const length = bytes.readUInt32LE(at);
    if (length > LAUNCHER_LIMITS.frameBodyBytes) throw new RangeError(`a frame of ${length} bytes`);
    if (bytes.length - at - HEADER_BYTES < length) break;
    const body = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
    frames.push({ type: bytes.readUInt16LE(at + 4), id: Number(bytes.readBigUInt64LE(at + 8)), pairs: parsePairs(body) });
    at += HEADER_BYTES + length;
  }
  return { frames, rest: bytes.subarray(at) };
};

const parsePairs = (body: Buffer): [string, string][] =>
  body
    .toString('utf8')
    .split('\0')
    .slice(0, -1)
    .map((text) => {
      const equals = text.indexOf('=');
      if (equals < 0) throw new RangeError('a pair without "="');
      return [text.slice(0, equals), text.slice(equals + 1)];
    });

export const fieldOf = (frame: Frame, key: string): string | undefined => frame.pairs.find(([k]) => k === key)?.[1];
