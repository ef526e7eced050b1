import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { byteLengthOf, bytesOfText, textOfBytes, wireBytesOf } from './byte-path.ts';

/** Bytes in which valid and broken sequences lie side by side. */
const names = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc.string({ unit: 'binary', maxLength: 4 }).map((text) => Uint8Array.from(Buffer.from(text, 'utf8'))),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Uint8Array.from(parts.flatMap((part) => [...part])));

describe('names between bytes and text', () => {
  test('every name survives the way there and back, through JSON too', () => {
    fc.assert(
      fc.property(names, (bytes) => {
        const text = JSON.parse(JSON.stringify(textOfBytes(bytes))) as string;
        expect(Buffer.from(bytesOfText(text) ?? []).equals(bytes)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test('text that is text reads as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(textOfBytes(Buffer.from(text, 'utf8'))).toBe(text);
        expect(Buffer.from(bytesOfText(text) ?? []).toString('utf8')).toBe(text);
      }),
    );
  });

  test('a text stands for one name, or for none', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0xd700, max: 0xe0ff }), { maxLength: 8 }), (units) => {
        const text = String.fromCharCode(...units);
        const bytes = bytesOfText(text);
        if (bytes) expect(textOfBytes(bytes)).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['a stray byte', [0x61, 0xff], 'a\udcff'],
    ['half a euro sign', [0xe2, 0x82], '\udce2\udc82'],
    ['an over-long slash', [0xc0, 0xaf], '\udcc0\udcaf'],
    ['an encoded surrogate', [0xed, 0xb2, 0x80], '\udced\udcb2\udc80'],
    ['a byte order mark', [0xef, 0xbb, 0xbf], '\ufeff'],
  ])('%s', (_, bytes, text) => {
    expect(textOfBytes(Uint8Array.from(bytes))).toBe(text);
    expect([...(bytesOfText(text) ?? [])]).toEqual(bytes);
  });

  test('lengths and wire bytes are those of the bytes', () => {
    fc.assert(
      fc.property(names, (bytes) => {
        const text = textOfBytes(bytes);
        expect(byteLengthOf(text)).toBe(bytes.byteLength);
        expect(Buffer.from(wireBytesOf(text) ?? []).equals(bytes)).toBe(true);
      }),
    );
    expect([byteLengthOf('a\ud800'), wireBytesOf('a\ud800')]).toEqual([Number.NaN, undefined]);
  });

  test.each(['\ud800', '\udc7f', 'a\udfff', '\udce2\udc82\udcac'])('%j stands for no bytes', (text) => {
    expect(bytesOfText(text)).toBeUndefined();
  });
});
