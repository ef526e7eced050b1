import { describe, expect, test } from 'vitest';
import { filtersOverlap, subjectMatches } from './stream.ts';

describe('subjects', () => {
  test.each([
    ['a.b', 'a.b', true],
    ['a.*', 'a.b', true],
    ['a.*', 'a.b.c', false],
    ['a.*.c', 'a.b.c', true],
    ['a.>', 'a.b.c', true],
    ['a.>', 'a', false],
    ['*', 'a', true],
    ['a.b', 'a.b.c', false],
    ['a.b.c', 'a.b', false],
  ])('%s takes %s: %s', (filter, subject, expected) => expect(subjectMatches(filter, subject)).toBe(expected));

  test.each([
    ['a.*', 'a.b', true],
    ['a.*', 'b.*', false],
    ['a.*', '*.b', true],
    ['a.*', 'a.*.c', false],
    ['a.>', 'a.b.c', true],
    ['a.>', 'a', false],
    ['>', 'a.b', true],
  ])('%s and %s overlap: %s', (one, other, expected) => {
    expect(filtersOverlap(one, other)).toBe(expected);
    expect(filtersOverlap(other, one)).toBe(expected);
  });
});
