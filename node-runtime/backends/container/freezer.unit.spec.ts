import { expect, test } from 'vitest';
import type { SandboxId } from '#bus/ids.ts';
import { Freezer } from './freezer.ts';

const ID = 'sb-0-00000000000000000000-node' as SandboxId;

/** A launcher that answers when it is told to. */
const slowLauncher = () => {
  const asked: string[] = [];
  const answers: ((error?: Error) => void)[] = [];
  const ask = (what: string) => () =>
    new Promise<void>((resolve, reject) => {
      asked.push(what);
      answers.push((error) => (error ? reject(error) : resolve()));
    });
  const next = async (error?: Error): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    answers.shift()?.(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { asked, next, freezer: new Freezer(async () => ({ freeze: ask('freeze'), thaw: ask('thaw') })) };
};

test('runs again only when the last who holds it lets go', async () => {
  const { asked, next, freezer } = slowLauncher();
  void freezer.hold(ID, 'paused');
  await next();
  await freezer.hold(ID, 'snapshot');
  await freezer.release(ID, 'snapshot');
  expect(asked).toEqual(['freeze']);
  void freezer.release(ID, 'paused');
  await next();
  expect(asked).toEqual(['freeze', 'thaw']);
  expect(freezer.runs(ID)).toBe(true);
});

test('a thaw waits for the freeze before it, and what nobody wants any more is not asked for', async () => {
  const { asked, next, freezer } = slowLauncher();
  const frozen = freezer.hold(ID, 'paused');
  await new Promise((resolve) => setImmediate(resolve));
  const changes = [freezer.release(ID, 'paused'), freezer.hold(ID, 'fenced')];
  expect(asked).toEqual(['freeze']);
  await next();
  await Promise.all([frozen, ...changes]);
  expect(asked).toEqual(['freeze']);
});

test('a request that failed leaves it open what the kernel has: the next asks again', async () => {
  const { asked, next, freezer } = slowLauncher();
  freezer.born(ID);
  const first = freezer.hold(ID, 'paused');
  await next(new Error('no'));
  await expect(first).rejects.toThrow('no');
  expect(freezer.runs(ID)).toBe(false);
  void freezer.release(ID, 'paused');
  await next();
  expect(asked).toEqual(['freeze', 'thaw']);
});

test('nothing is asked about a sandbox that was just launched and that nobody holds', async () => {
  const { asked, freezer } = slowLauncher();
  freezer.born(ID);
  await freezer.release(ID, 'paused');
  expect(asked).toEqual([]);
});
