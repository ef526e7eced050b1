/** Bytes from wherever they come, in chunks of one size. */
import { toBytes } from '../exec/text.ts';

/** A string is sent as UTF-8. */
export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

export async function* chunksOf(content: FileContent, chunkBytes: number): AsyncGenerator<Uint8Array> {
  if (typeof content === 'string' || content instanceof Uint8Array) {
    const bytes = toBytes(content);
    for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
    return;
  }
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const piece of content as AsyncIterable<Uint8Array>) {
    for (let at = 0; at < piece.byteLength; ) {
      const part = piece.subarray(at, at + chunkBytes - length);
      parts.push(part);
      length += part.byteLength;
      at += part.byteLength;
      if (length < chunkBytes) continue;
      yield joined(parts, length);
      parts = [];
      length = 0;
    }
  }
  if (length > 0) yield joined(parts, length);
}

const joined = (parts: readonly Uint8Array[], length: number): Uint8Array => (parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts, length));
