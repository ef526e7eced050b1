/** The end of a script is found wherever a stream is cut, and nothing of the output is lost or added. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MarkScanner } from './mark-scanner.ts';
import { endMarks } from './script.ts';

const MARK = 'a'.repeat(32);
const { stdout: mark } = endMarks(MARK);

/** Bytes that are as like the mark as can be. */
const output = fc
  .array(fc.constantFrom('\x1e', MARK, 'a', ' ', '7', `\x1e${MARK.slice(1)} `, 'text\n'), { maxLength: 20 })
  .map((parts) => parts.join(''))
  .filter((text) => !text.includes(mark.begin));

test('any output in any pieces', () => {
  fc.assert(
    fc.property(
      output,
      fc.integer({ min: 0, max: 255 }),
      output,
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 7 }),
      (before, code, after, sizes) => {
        const stream = Buffer.from(`${before}${mark.begin}${code}${mark.end}${after}`);
        const scanner = new MarkScanner(mark, 1_000);
        const rest: Uint8Array[] = [];
        for (let at = 0, n = 0; at < stream.byteLength; n += 1) {
          const piece = stream.subarray(at, at + (sizes[n % sizes.length] ?? 1));
          rest.push(scanner.value === undefined ? scanner.take(piece) : piece);
          at += piece.byteLength;
        }
        expect([Buffer.from(scanner.bytes).toString(), scanner.value, Buffer.concat(rest).toString()]).toEqual([before, String(code), after]);
        expect(scanner.totalBytes).toBe(Buffer.byteLength(before));
      },
    ),
  );
});

test('a stream that ends early was all output; beyond the limit it is counted', () => {
  const scanner = new MarkScanner(mark, 3);
  scanner.take(Buffer.from('abcdef\x1eaa'));
  scanner.finish();
  expect([Buffer.from(scanner.bytes).toString(), scanner.totalBytes, scanner.value]).toEqual(['abc', 9, undefined]);
});
