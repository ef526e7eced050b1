import fc from 'fast-check';
import { expect, test } from 'vitest';
import { linesOf } from './lines.ts';

const collect = async (chunks: readonly Uint8Array[], from = 0, max = 1_000) => {
  const lines = [];
  const source = async function* () {
    yield* chunks;
  };
  for await (const line of linesOf(source(), from, max)) lines.push(line);
  return lines;
};

test('lines are the same however the stream is cut, and each offset is where the next line begins', async () => {
  const text = fc.array(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((s) => s.replaceAll('\n', ' ')),
    { maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(60), { maxLength: 8 }), fc.nat(1_000), fc.boolean(), async (lines, cuts, from, isClosed) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join('') + (isClosed ? '' : 'rest'));
      const places = [0, ...[...new Set(cuts)].sort((a, b) => a - b).filter((at) => at < bytes.byteLength), bytes.byteLength];
      const chunks = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
      const read = await collect(chunks, from);
      expect(read.map((line) => line.text)).toEqual([...lines, ...(isClosed ? [] : ['rest'])]);
      for (const { text: line, endOffset } of read)
        expect(
          bytes
            .subarray(0, endOffset - from)
            .toString()
            .trimEnd()
            .endsWith(line.trimEnd()),
        ).toBe(true);
      expect(read.at(-1)?.endOffset ?? from).toBe(from + bytes.byteLength);
    }),
    { numRuns: 300 },
  );
});

test('a line that is too long is refused before it fills the memory', async () => {
  await expect(collect([Buffer.alloc(600, 'x'), Buffer.alloc(600, 'x')])).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  expect(await collect([Buffer.alloc(600, 'x'), Buffer.from('\n'), Buffer.alloc(600, 'y')])).toHaveLength(2);
});
