import { describe, expect, test } from 'vitest';
import { checkTarEntry, type ListingRules, parseTarLine, type TarEntry } from './tar-listing.ts';

const rules: ListingRules = { ownersKept: true, stripComponents: 0, whiteouts: 'refuse' };
const entry = (overrides: Partial<TarEntry>): TarEntry => ({ type: '-', uid: 0, gid: 0, sizeBytes: 1, name: 'a', target: null, ...overrides });
const codeOf = (e: TarEntry, r: ListingRules = rules): string => {
  try {
    checkTarEntry('archive x.tar', e, r);
    return 'accepted';
  } catch (error) {
    expect((error as Error).message).toContain(e.name);
    return (error as { code: string }).code;
  }
};

describe('lines of a listing', () => {
  test.each([
    ['-rw-r--r-- 0/0               2 2020-09-13 12:26:40 a\\ b/x\\ ->\\ y', { type: '-', name: 'a\\ b/x\\ ->\\ y', target: null, sizeBytes: 2 }],
    ['lrwxrwxrwx 0/0               0 2020-09-13 12:26:40 a\\ b/l -> sp\\ ace\\ ->\\ "t\\n', { type: 'l', name: 'a\\ b/l', target: 'sp\\ ace\\ ->\\ "t\\n' }],
    [
      'hrw-r--r-- 1000/100          0 2020-09-13 12:26:40 hard link to a\\ link\\ to\\ b',
      { type: 'h', name: 'hard', target: 'a\\ link\\ to\\ b', uid: 1000, gid: 100 },
    ],
    ['-rw-r--r-- 0/0               3 2001-02-03 04:05:06.789       ./b', { name: './b' }],
    ['crw-r--r-- 0/0             1,3 2020-09-13 12:26:40 dev/null', { type: 'c', name: 'dev/null', sizeBytes: 0 }],
    [
      '-rw-r--r-- 4294967294/0 123456789012 2020-09-13 12:26:40 new\\nline\\\\back',
      { name: 'new\\nline\\\\back', uid: 4_294_967_294, sizeBytes: 123_456_789_012 },
    ],
  ])('%s', (line, expected) => {
    expect(parseTarLine(line)).toMatchObject(expected);
  });

  test('anything else is not understood, rather than half understood', () => {
    for (const line of ['', 'tar: hello', '-rw-r--r-- 0/0 x 2020-09-13 12:26:40 a', '-rw-r--r-- 0/0 1 2020-09-13 12:26:40 '])
      expect(parseTarLine(line)).toBeNull();
  });
});

describe('entries of an archive', () => {
  test.each<[string, Partial<TarEntry>]>([
    ['a plain file', { name: './usr/bin/tool' }],
    ['a link that points outside, which is text until somebody follows it', { type: 'l', target: '../../etc/passwd' }],
    ['a hard link inside', { type: 'h', target: 'usr/bin/tool' }],
    ['dots that are part of a name', { name: 'a..b/...' }],
    ['the last id of a sandbox', { uid: 65_535, gid: 65_535 }],
  ])('%s is accepted', (_, overrides) => {
    expect(codeOf(entry(overrides))).toBe('accepted');
  });

  test.each<[string, Partial<TarEntry>]>([
    ['a name above the root', { name: '../evil' }],
    ['a name above the root, later', { name: 'a/../../evil' }],
    ['an absolute name', { name: '/etc/passwd' }],
    ['a hard link outside', { type: 'h', target: '../secret' }],
    ['a hard link to an absolute name', { type: 'h', target: '/etc/shadow' }],
    ['an owner beyond the range', { uid: 65_536 }],
    ['a group beyond the range', { gid: 70_000 }],
    ['a deletion mark nobody spoke of', { name: 't/.wh.a' }],
    ['a directory that looks like a deletion mark', { type: 'd', name: '.wh.etc/' }],
    ['a type no layer holds', { type: 'V' }],
  ])('%s is refused by name', (_, overrides) => {
    expect(codeOf(entry(overrides))).toBe('INVALID_ARGUMENT');
  });

  test('what the caller says decides about owners, marks and stripping', () => {
    expect(codeOf(entry({ uid: 70_000 }), { ...rules, ownersKept: false })).toBe('accepted');
    expect(codeOf(entry({ name: '.wh.a' }), { ...rules, whiteouts: 'oci' })).toBe('accepted');
    expect(codeOf(entry({ name: '.wh.a' }), { ...rules, whiteouts: 'keep' })).toBe('accepted');
    expect(codeOf(entry({ name: 'package/index.js' }), { ...rules, stripComponents: 1 })).toBe('accepted');
    expect(codeOf(entry({ name: 'index.js' }), { ...rules, stripComponents: 1 })).toBe('INVALID_ARGUMENT');
    expect(codeOf(entry({ type: 'd', name: 'package/' }), { ...rules, stripComponents: 1 })).toBe('accepted');
  });
});
