import { describe, expect, test } from 'vitest';
import { TarWords } from './tar-words.ts';

const understood = (...parts: readonly string[]): TarWords => {
  const words = new TarWords();
  for (const part of parts) words.take(Buffer.from(part, 'latin1'));
  words.end();
  return words;
};

describe('what tar says of things that it leaves out', () => {
  test.each([
    ['tar: ./s: socket ignored\n', { path: 's', what: 'socket' }],
    ['tar: ./a\\nb\\\\c\\:\\377: socket ignored\n', { path: 'a\nb\\c:\udcff', what: 'socket' }],
    ['tar: ./log: file changed as we read it\n', { path: 'log', what: 'changed' }],
    ['tar: ./log: File shrank by 17 bytes; padding with zeros\n', { path: 'log', what: 'changed' }],
    ["tar: setxattrat: Cannot set 'user.k' extended attribute for file './f': Operation not supported\n", { path: 'f', what: 'xattr' }],
    ["tar: setxattrat: Cannot set 'user.k' extended attribute for file './two\nlines': Operation not supported\n", { path: 'two\nlines', what: 'xattr' }],
  ])('%j', (message, omission) => {
    expect(understood(message)).toMatchObject({ omitted: [omission], omittedCount: 1, complaint: '' });
    const bytes = [...message];
    expect(understood(...bytes).omitted).toEqual([omission]);
  });

  test('what failed is kept for the error', () => {
    const words = understood('tar: ./x: Cannot open: Permission denied\ntar: ./s: socket ignored\ntar: Exiting with failure status due to previous errors\n');
    expect(words.complaint).toBe('tar: ./x: Cannot open: Permission denied\ntar: Exiting with failure status due to previous errors\n');
    expect(words.omittedCount).toBe(1);
  });

  test('attributes of one file are one omission; others are counted beyond those that are named', () => {
    const refused = (name: string, file: string): string =>
      `tar: setxattrat: Cannot set '${name}' extended attribute for file './${file}': Operation not supported\n`;
    expect(understood(refused('user.a', 'f'), refused('user.b', 'f'), refused('user.a', 'g')).omittedCount).toBe(2);
    const many = understood(...Array.from({ length: 1_200 }, (_, n) => `tar: ./s${n}: socket ignored\n`));
    expect([many.omittedCount, many.omitted.length]).toEqual([1_200, 1_000]);
  });

  test('a message without an end takes bounded memory', () => {
    const words = understood('tar: ', ...Array.from({ length: 2_000 }, () => 'x'.repeat(10_000)));
    expect(words.complaint.length).toBeLessThan(20_000);
  });
});
