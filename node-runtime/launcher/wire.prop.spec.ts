import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeFrame, takeFrames } from './wire.ts';

const key = fc.stringMatching(/^[a-zA-Z]{1,12}$/);
const value = fc.string({ maxLength: 60 }).map((text) => text.replaceAll('\0', ''));
const request = fc.record({
  type: fc.integer({ min: 1, max: 65_535 }),
  id: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  pairs: fc.array(fc.tuple(key, value), { maxLength: 8 }),
});

test('frames come back whole, however the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 5 }), fc.array(fc.nat({ max: 40 }), { maxLength: 20 }), (requests, cuts) => {
      let stream = Buffer.concat(requests.map(({ type, id, pairs }) => encodeFrame(type, id, pairs)));
      let rest: Buffer = Buffer.alloc(0);
      const got = [];
      for (const cut of [...cuts, stream.length]) {
        const taken = takeFrames(Buffer.concat([rest, stream.subarray(0, cut)]));
        stream = stream.subarray(cut);
        rest = taken.rest;
        got.push(...taken.frames);
      }
      expect(got).toEqual(requests);
      expect(rest).toHaveLength(0);
    }),
  );
});

test('any bytes give frames or a RangeError, nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        takeFrames(Buffer.from(bytes));
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(RangeError);
      }
    }),
  );
});

test('a value with a NUL or a body that is too long is refused before it is sent', () => {
  expect(() => encodeFrame(5, 1, [['hostname', 'a\0slot=0']])).toThrow(RangeError);
  expect(() => encodeFrame(5, 1, [['hostname', 'x'.repeat(1 << 20)]])).toThrow(RangeError);
});
