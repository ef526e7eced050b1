import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DsecError } from '../errors.ts';
import { entryReader, eventReader, readEntry } from './file-records.ts';

const entryBytes = (name: Uint8Array, target: Uint8Array, fill: number): Buffer => {
  const record = Buffer.alloc(56 + name.byteLength + target.byteLength, fill);
  record.writeUInt32LE(record.byteLength, 0);
  record.writeUInt16LE(name.byteLength, 4);
  record.writeUInt16LE(target.byteLength, 6);
  record.writeUInt8(3, 8);
  record.writeBigInt64LE(-5n, 48);
  record.set(name, 56);
  record.set(target, 56 + name.byteLength);
  return record;
};
const eventBytes = (name: Uint8Array, kind: number): Buffer => {
  const record = Buffer.alloc(8 + name.byteLength);
  record.writeUInt16LE(record.byteLength, 0);
  record.writeUInt16LE(kind, 2);
  record.set(name, 8);
  return record;
};
const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const places = [0, ...at.map((n) => n % (bytes.byteLength + 1)).sort((a, b) => a - b), bytes.byteLength];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
};
const name = fc.uint8Array({ minLength: 1, maxLength: 255 });

test('entries come out as they went in, wherever the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, name, fc.nat(255)), { maxLength: 10 }), fc.array(fc.nat()), (entries, cuts) => {
      const records = entries.map(([n, t, fill]) => entryBytes(n, t, fill));
      const reader = entryReader();
      const read = cut(Buffer.concat(records), cuts).flatMap((chunk) => reader.take(chunk));
      reader.end();
      expect(read).toEqual(records.map(readEntry));
    }),
  );
});

test('events too', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 10 }), fc.array(fc.nat()), (events, cuts) => {
      const reader = eventReader();
      const bytes = Buffer.concat(events.map(([n, kind, directory]) => eventBytes(n, kind | (directory ? 0x8000 : 0))));
      expect(
        cut(bytes, cuts)
          .flatMap((chunk) => reader.take(chunk))
          .map(({ isDirectory }) => isDirectory),
      ).toEqual(events.map(([, , directory]) => directory));
    }),
  );
});

test('whatever a sandbox sends is records or a typed error, and never kept for long', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, asEntries) => {
      const reader = asEntries ? entryReader() : eventReader();
      try {
        reader.take(bytes);
        reader.end();
      } catch (error) {
        expect(error).toBeInstanceOf(DsecError);
      }
    }),
    { numRuns: 2_000 },
  );
});
