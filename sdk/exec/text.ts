/**
 * Output is bytes; this is the one place where it becomes text. The WHATWG decoder in streaming mode replaces what is
 * not UTF-8 by U+FFFD, never throws, and never splits a character at a chunk's edge. A byte order mark is kept: it is
 * part of what the program wrote.
 */
const OPTIONS = { fatal: false, ignoreBOM: true };

export const decodeText = (bytes: Uint8Array): string => new TextDecoder('utf-8', OPTIONS).decode(bytes);

/** Text of a stream of bytes, chunk by chunk; a character waits until it is whole. */
export async function* decodeChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', OPTIONS);
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    if (text.length > 0) yield text;
  }
  const rest = decoder.decode();
  if (rest.length > 0) yield rest;
}

export const toBytes = (data: string | Uint8Array): Uint8Array => (typeof data === 'string' ? Buffer.from(data, 'utf8') : data);
