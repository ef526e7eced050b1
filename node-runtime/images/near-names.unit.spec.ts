import { expect, test } from 'vitest';
import { nearest } from './near-names.ts';

const known = ['debian', 'debian:13', 'team/debian:12', 'node', 'tools/git', 'base'];

test.each([
  ['debain', ['debian']],
  ['debian:12', ['debian', 'debian:13', 'team/debian:12']],
  ['git', ['tools/git']],
  ['nodes', ['node']],
  ['completely-else', []],
])('%s is near %j', (wanted, expected) => {
  expect(nearest(wanted, known, 3)).toEqual(expected);
});

test('at most as many as asked for', () => {
  expect(nearest('debian', known, 1)).toHaveLength(1);
  expect(nearest('x', [], 3)).toEqual([]);
});
