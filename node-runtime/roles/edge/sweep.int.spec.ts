import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import { createLog } from '../../log/log.ts';
import { sweepLogs } from './sweep.ts';

/** Levels of one chain: its path is just short enough for a call. */
const LEVELS = 380;
const NAME = 'directory';

let dir: string;
let trashDir: string;
let sandboxesDir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-sweep-'));
  [trashDir, sandboxesDir] = [join(dir, 'trash'), join(dir, 'sandboxes')];
  mkdirSync(trashDir);
  mkdirSync(sandboxesDir);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const sweepUntilEmpty = async (): Promise<void> => {
  const sweeper = sweepLogs({ sandboxesDir, trashDir, isLive: () => true, clock: systemClock, log: createLog('test', 'error') });
  await expect.poll(() => readdirSync(trashDir), { timeout: 20_000 }).toEqual([]);
  sweeper.stop();
};

/** A chain of directories; returns its lowest one. */
const chain = (top: string): string => {
  const lowest = join(top, ...Array.from({ length: LEVELS }, () => NAME));
  mkdirSync(lowest, { recursive: true });
  return lowest;
};

test('directories that lie deeper than a path is long are removed, and do not keep others', async () => {
  for (const entry of ['a-first', 'b-deep', 'c-last']) mkdirSync(join(trashDir, entry));
  const lowest = chain(join(trashDir, 'b-deep'));
  chain(join(dir, 'more'));
  renameSync(join(dir, 'more'), join(lowest, 'more'));
  await sweepUntilEmpty();
});

test('names that are no text, and directories that nobody may enter', async () => {
  const box = join(trashDir, 'box');
  mkdirSync(join(box, 'closed/inner'), { recursive: true, mode: 0o000 });
  writeFileSync(Buffer.concat([Buffer.from(`${box}/`), Buffer.from([0xff, 0xfe, 0x80])]), 'x');
  await sweepUntilEmpty();
  expect(existsSync(box)).toBe(false);
});
