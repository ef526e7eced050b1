import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent, traceIdOf } from './trace-context.ts';

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
    .map((digits) => digits.join(''))
    .filter((text) => !/^0+$/.test(text));

test('what is formatted is read as it was', () => {
  fc.assert(
    fc.property(hex(32), hex(16), fc.integer({ min: 0, max: 255 }), (traceId, spanId, flags) => {
      expect(parseTraceparent(formatTraceparent({ traceId, spanId, flags }))).toEqual({ traceId, spanId, flags });
      expect(traceIdOf(formatTraceparent({ traceId, spanId, flags }))).toBe(traceId);
    }),
  );
});

test.each([
  undefined,
  '',
  '00-ab-cd-01',
  `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
  `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'A'.repeat(32)}-${'1'.repeat(16)}-01`,
])('%s names no trace', (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
  expect(traceIdOf(text)).toBeUndefined();
});
