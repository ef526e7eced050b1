/** Lines of a byte stream, each with the offset behind it: how far the stream has been served once the line has been. */
import { DsecError } from '#bus/errors.ts';

export type Line = { readonly text: string; readonly endOffset: number };

const NEWLINE = 0x0a;

/** What follows the last line break is given too, when the stream ends. A line longer than `maxBytes` throws PAYLOAD_TOO_LARGE. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, fromOffset: number, maxBytes: number): AsyncGenerator<Line> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let offset = fromOffset;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; ) {
      const end = chunk.indexOf(NEWLINE, at);
      const part = chunk.subarray(at, end < 0 ? chunk.byteLength : end);
      parts.push(part);
      held += part.byteLength;
      if (held > maxBytes) throw DsecError.of('PAYLOAD_TOO_LARGE', `a line of more than ${maxBytes} bytes; send large data by reference`);
      at += part.byteLength + (end < 0 ? 0 : 1);
      if (end < 0) break;
      offset += held + 1;
      yield { text: Buffer.concat(parts).toString('utf8'), endOffset: offset };
      parts = [];
      held = 0;
    }
  }
  if (held > 0) yield { text: Buffer.concat(parts).toString('utf8'), endOffset: offset + held };
}
