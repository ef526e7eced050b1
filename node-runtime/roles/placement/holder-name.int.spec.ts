/** Whose leases a new placement may have settled: of a process that is certainly gone, and of no other. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { outlives } from '#bus/iam/quota-lending.ts';
import { bundled } from '#test/helpers/bundled.ts';
import { takeHolderName } from './holder-name.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-holder-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('the next life of a place outlives the one that was killed, and nobody while that one lives', async () => {
  const child = spawn(process.execPath, [await bundled('test/helpers/holder-child.ts'), dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const first = line.toString().trim();
  const beside = takeHolderName(dir);
  expect(beside.hadLives).toBe(false);
  expect(outlives(beside.name, first)).toBe(false);
  beside.release();
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  const second = takeHolderName(dir);
  expect(second.hadLives).toBe(true);
  expect(outlives(second.name, first)).toBe(true);
  expect(outlives(first as typeof second.name, second.name)).toBe(false);
  second.release();
  const third = takeHolderName(dir);
  expect(outlives(third.name, second.name) && outlives(third.name, first)).toBe(true);
  third.release();
});

test('a file that was cut short is a place of its own', () => {
  writeFileSync(join(dir, 'placement.holder'), 'placement-ab');
  const taken = takeHolderName(dir);
  expect(taken.hadLives).toBe(false);
  taken.release();
});
