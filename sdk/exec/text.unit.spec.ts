/** Bytes that are not UTF-8, and characters that straddle chunks. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeChunks, decodeText } from './text.ts';

async function* chunksOf(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, n = 0; at < bytes.byteLength; n += 1) {
    const size = Math.max(1, sizes[n % Math.max(1, sizes.length)] ?? 1);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
const streamed = async (bytes: Uint8Array, sizes: readonly number[]): Promise<string> => {
  let text = '';
  for await (const piece of decodeChunks(chunksOf(bytes, sizes))) text += piece;
  return text;
};

test('a euro sign in two writes is one character', async () => {
  expect(await streamed(Buffer.from('€'), [1, 2])).toBe('€');
});

test('50,000 characters misaligned with every buffer size hold no replacement character', async () => {
  const text = `a${'€'.repeat(50_000)}`;
  const bytes = Buffer.from(text);
  expect(bytes.byteLength).toBe(150_001);
  expect(await streamed(bytes, [4_096, 1, 65_535])).toBe(text);
});

test('an end in mid-character is one replacement character', async () => {
  expect(await streamed(Uint8Array.of(0xe2, 0x82), [1])).toBe('\uFFFD');
});

test('stray bytes are replaced one by one, NUL and byte order mark are kept', () => {
  expect(decodeText(Uint8Array.of(0xff, 0xfe, 0x00, 0x80, 0x41))).toBe('\uFFFD\uFFFD\0\uFFFDA');
  expect(decodeText(Uint8Array.of(0xef, 0xbb, 0xbf, 0x78))).toBe('\uFEFFx');
});

test('any bytes in any pieces decode as the whole does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }), async (bytes, sizes) => {
      expect(await streamed(bytes, sizes)).toBe(decodeText(bytes));
    }),
  );
});
