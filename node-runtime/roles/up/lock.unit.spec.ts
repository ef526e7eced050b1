/** Two platforms share neither a data directory nor a run directory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockDataDir, lockRunDir } from './lock.ts';

test.each([
  ['data directory', lockDataDir],
  ['run directory', lockRunDir],
])('%s: the second is refused with what to do, and may when the first has ended', (_, lock) => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-lock-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const unlock = lock(dir);
  expect(() => lock(dir)).toThrow(expect.objectContaining({ code: 'HOST_UNFIT', message: expect.stringContaining(dir) }));
  unlock();
  lock(dir)();
});
