import { expect, test } from 'vitest';
import { exactArguments } from './arguments.ts';

const line = (...args: readonly (string | Buffer)[]): Buffer => Buffer.concat(args.flatMap((arg) => [Buffer.from(arg), Buffer.of(0)]));

test('bytes that are no UTF-8 survive, beside text, empty arguments and what Node took for itself', () => {
  const args = ['cat', '', 'é', '\ufffd\ufffd', 'a\ufffd'];
  const given = () => line('node', '--enable-source-maps', 'dsec.mjs', 'cat', '', 'é', Buffer.of(0xff, 0xfe), Buffer.of(0x61, 0xe2));
  expect(exactArguments(args, given)).toEqual(['cat', '', 'é', '\udcff\udcfe', 'a\udce2']);
});

test('a replacement character that was typed stays one', () => {
  expect(exactArguments(['\ufffd'], () => line('node', 'dsec.mjs', '\ufffd'))).toEqual(['\ufffd']);
});

test('ordinary arguments are not looked up', () => {
  const unread = (): Buffer => {
    throw new Error('was read');
  };
  expect(exactArguments(['ls', '-q'], unread)).toEqual(['ls', '-q']);
});
