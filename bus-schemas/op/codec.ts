/**
 * Frame of every data-plane message: `[u32 big-endian length of meta][meta, JSON][body, raw bytes]`.
 * Bytes stay bytes on the wire; only the SDK decodes text.
 */
import { DsecError } from '../errors.ts';
import { assertFits } from '../envelope.ts';

const LENGTH_BYTES = 4;
const EMPTY = new Uint8Array(0);

export const packOp = (meta: unknown, ...body: readonly Uint8Array[]): Uint8Array => {
  const json = Buffer.from(JSON.stringify(meta), 'utf8');
  const total = LENGTH_BYTES + json.byteLength + body.reduce((n, b) => n + b.byteLength, 0);
  assertFits('data-plane message', total);
  const frame = Buffer.allocUnsafe(total);
  frame.writeUInt32BE(json.byteLength, 0);
  frame.set(json, LENGTH_BYTES);
  let at = LENGTH_BYTES + json.byteLength;
  for (const part of body) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame;
};

/** Throws MALFORMED_MESSAGE; the body is a view on `frame`, not a copy. */
export const unpackOp = (frame: Uint8Array): { meta: unknown; body: Uint8Array } => {
  const view = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  const metaLength = view.byteLength >= LENGTH_BYTES ? view.readUInt32BE(0) : -1;
  if (metaLength < 0 || LENGTH_BYTES + metaLength > view.byteLength) throw DsecError.of('MALFORMED_MESSAGE', 'data-plane message is cut short');
  try {
    const meta: unknown = JSON.parse(view.toString('utf8', LENGTH_BYTES, LENGTH_BYTES + metaLength));
    const body = view.byteLength > LENGTH_BYTES + metaLength ? view.subarray(LENGTH_BYTES + metaLength) : EMPTY;
    return { meta, body };
  } catch (cause) {
    throw DsecError.of('MALFORMED_MESSAGE', 'meta of a data-plane message is not JSON', { cause });
  }
};
