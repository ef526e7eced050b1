import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eachLine } from './lines.ts';

const linesOf = async (chunks: readonly Buffer[], maxBytes: number): Promise<string[]> => {
  const lines: string[] = [];
  await eachLine(Readable.from(chunks), maxBytes, (line) => lines.push(line));
  return lines;
};

test('lines do not depend on how the bytes were cut into chunks', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'é', '\n', ' ', '漢') });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(20), { minLength: 1 }), async (whole, sizes) => {
      const bytes = Buffer.from(whole);
      const chunks: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.byteLength; i += 1) {
        const size = 1 + (sizes[i % sizes.length] as number);
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      const expected = whole.split('\n');
      if (expected.at(-1) === '') expected.pop();
      expect(await linesOf(chunks, 10_000)).toEqual(expected);
    }),
  );
});

test('an endless line is cut, and the next one is whole', async () => {
  const chunks = [...Array.from({ length: 100 }, () => Buffer.alloc(1_000, 'x')), Buffer.from('\nnext\r\n')];
  expect(await linesOf(chunks, 5)).toEqual(['xxxxx', 'next']);
});
