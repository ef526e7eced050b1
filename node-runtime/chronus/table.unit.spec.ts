import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { TimestampMs } from '#bus/units.ts';
import { ExecFiles } from './files.ts';
import { CHRONUS_LIMITS } from './limits.ts';
import { CommandTable } from './table.ts';
import { accepted, idOf } from './testing/accepted.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-table-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const open = (): CommandTable => new CommandTable(dir, new ExecFiles(dir));
const write = (name: string): void => writeFileSync(join(dir, name), '');
/** The exit record of a command that ended with 0. */
const writeExit = (n: number): void => {
  const record = Buffer.alloc(112);
  record.write(idOf(n));
  writeFileSync(join(dir, `${idOf(n)}.exit`), record);
};

test('what was accepted and has no end is taken up again; what has an end is found when asked for', () => {
  const first = open();
  for (const n of [1, 2, 3]) first.accept(accepted(n));
  for (const n of [1, 2]) write(`${idOf(n)}.out`);
  writeExit(1);

  const table = open();
  table.load();
  expect([...table.live].map(({ execId, started, ended }) => [execId, started, ended])).toEqual([
    [idOf(2), true, false],
    [idOf(3), false, false],
  ]);
  expect(table.runningCount).toBe(1);
  expect(table.get(idOf(1))?.view).toMatchObject({ state: 'ended', exitCode: 0 });
  expect(table.get(idOf(4))).toBeUndefined();
  expect(table.list().map(({ execId, state }) => [execId, state])).toEqual([
    [idOf(2), 'running'],
    [idOf(1), 'ended'],
  ]);
});

test('memory holds the newest ended commands only', () => {
  const table = open();
  for (let n = 0; n < 3 * CHRONUS_LIMITS.recentCommands; n += 1) {
    write(`${idOf(n)}.out`);
    writeExit(n);
    table.bury(table.accept(accepted(n)), { at: 0 as TimestampMs, reason: 'sandbox_died' });
  }
  expect([...table.live]).toEqual([]);
  const first = table.get(idOf(0));
  expect(first?.view.state).toBe('ended');
  expect(table.get(idOf(0))).toBe(first); // and what was asked for is among the newest
});

test('beyond the limit the oldest ended commands are forgotten, files and all, and what runs is not', async () => {
  const total = CHRONUS_LIMITS.journalEntries;
  const [old, running, older, newest] = [0, 1, 2, total - 1];
  const started = new Set([old, running, older, newest]);
  const refusal = (n: number): string => (started.has(n) ? '' : `${JSON.stringify({ v: 1, fact: 'refused', execId: idOf(n) })}\n`);
  writeFileSync(join(dir, 'journal'), Array.from({ length: total }, (_, n) => `${JSON.stringify(accepted(n))}\n${refusal(n)}`).join(''));
  for (const n of started) write(`${idOf(n)}.out`);
  for (const n of [old, older, newest]) writeExit(n);

  const table = open();
  table.load();
  table.accept(accepted(total));
  await vi.waitFor(() => expect(existsSync(join(dir, `${idOf(older)}.out`))).toBe(false), { timeout: 20_000 });
  expect(readdirSync(dir).sort()).toEqual(['journal', `${idOf(running)}.out`, `${idOf(newest)}.exit`, `${idOf(newest)}.out`].sort());
  expect([old, older].map((n) => table.get(idOf(n)))).toEqual([undefined, undefined]);
  expect(table.get(idOf(running))?.running).toBe(true);
  expect(open().get(idOf(newest))?.view.exitCode).toBe(0);
});
