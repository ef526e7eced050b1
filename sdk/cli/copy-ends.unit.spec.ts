import { describe, expect, test } from 'vitest';
import { childOf, copyEnds, namesContent } from './copy-ends.ts';

const ID = 'sb-0-0123456789abcdef0123-node-1';

describe('the ends of a copy', () => {
  test.each([
    ['a', `${ID}:/w`, { sandbox: ID, into: true, from: { kind: 'path', path: 'a' }, to: { kind: 'path', path: '/w' } }],
    [`${ID}:/w/a:b`, './x', { sandbox: ID, into: false, from: { kind: 'path', path: '/w/a:b' }, to: { kind: 'path', path: './x' } }],
    ['-', `${ID}:/w`, { sandbox: ID, into: true, from: { kind: 'stream', path: '-' }, to: { kind: 'path', path: '/w' } }],
    [`${ID}:/w`, '-', { sandbox: ID, into: false, from: { kind: 'path', path: '/w' }, to: { kind: 'stream', path: '-' } }],
    ['./sb-0-x:/a', `${ID}:/`, { sandbox: ID, into: true, from: { kind: 'path', path: './sb-0-x:/a' }, to: { kind: 'path', path: '/' } }],
  ])('%s to %s', (source, destination, ends) => {
    expect(copyEnds(source, destination)).toEqual(ends);
  });

  test.each([
    ['a', 'b'],
    [`${ID}:/a`, `${ID}:/b`],
    ['a', `${ID}:w`],
    ['a', `${ID}:`],
  ])('%s to %s is refused', (source, destination) => {
    expect(() => copyEnds(source, destination)).toThrow(/SANDBOX:PATH|absolute/);
  });

  test('names', () => {
    expect(['.', 'a/.', 'a', 'a/..', '.a'].map(namesContent)).toEqual([true, true, false, false, false]);
    expect([childOf('/w/', 'a'), childOf('/', 'a'), childOf('/w', 'a')]).toEqual(['/w/a', '/a', '/w/a']);
  });
});
