import { expect, test } from 'vitest';
import { LeaseEnds } from './lease-ends.ts';
import { leaseId } from './testing/samples.ts';

const [a, b] = [leaseId(1), leaseId(2)];

test('a lease is over a life after it was first seen, and is forgotten when it has left the books', () => {
  const ends = new LeaseEnds(100);
  expect(ends.seen([a], 1_000)).toEqual(new Set());
  expect(ends.seen([a, b], 1_099)).toEqual(new Set());
  expect(ends.seen([a, b], 1_100)).toEqual(new Set([a]));
  expect(ends.seen([b], 1_198)).toEqual(new Set());
  expect(ends.seen([a, b], 1_199)).toEqual(new Set([b]));
});
