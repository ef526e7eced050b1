/** Lines of a stream of bytes, each cut at a maximum: a tool's output may repeat what a hostile archive says. */
import type { Readable } from 'node:stream';

const NEWLINE = 0x0a;

export const eachLine = async (stream: Readable, maxBytes: number, onLine: (line: string) => void): Promise<void> => {
  let kept = Buffer.alloc(0);
  const add = (part: Buffer): void => {
    if (kept.byteLength < maxBytes) kept = Buffer.concat([kept, part.subarray(0, maxBytes - kept.byteLength)]);
  };
  const emit = (): void => {
    onLine(kept.toString('utf8').replace(/\r$/, ''));
    kept = Buffer.alloc(0);
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      emit();
      from = end + 1;
    }
    add(chunk.subarray(from));
  }
  if (kept.byteLength > 0) emit();
};
