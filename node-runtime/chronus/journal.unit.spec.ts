import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ClientKey } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { Journal } from './journal.ts';
import { accepted, idOf } from './testing/accepted.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-journal-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const entry = (n: number, change = {}) => ({ accepted: accepted(n), refused: false, death: undefined, ...change });

test('an empty directory is an empty journal', () => {
  const journal = new Journal(dir);
  expect([journal.readAll().size, journal.find(idOf(1))]).toEqual([0, undefined]);
});

test('facts are folded per command, in the order of acceptance', () => {
  const journal = new Journal(dir);
  for (const n of [1, 2, 3, 4]) journal.append(accepted(n));
  journal.append({ v: 1, fact: 'refused', execId: idOf(1) });
  journal.append({ v: 1, fact: 'sandbox_died', execId: idOf(2), at: 9 as TimestampMs });
  const again = new Journal(dir);
  expect([...again.readAll().values()]).toEqual([entry(1, { refused: true }), entry(2, { death: { at: 9, reason: 'sandbox_died' } }), entry(3), entry(4)]);
  expect([1, 2, 3, 4, 5].map((n) => again.find(idOf(n)))).toEqual([...again.readAll().values(), undefined]);
});

test('a second try of a refused command is a fresh one, at the end', () => {
  const journal = new Journal(dir);
  journal.append(accepted(1));
  journal.append({ v: 1, fact: 'refused', execId: idOf(1) });
  journal.append(accepted(2));
  journal.append(accepted(1));
  expect([...journal.readAll().values()]).toEqual([entry(2), entry(1)]);
});

test('a line torn anywhere is no fact and does not spoil the next', () => {
  const whole = (() => {
    const journal = new Journal(dir);
    journal.append(accepted(1));
    journal.append(accepted(2));
    return readFileSync(join(dir, 'journal'));
  })();
  const first = whole.indexOf('\n') + 1;
  for (let cut = first; cut < whole.byteLength; cut += 7) {
    truncateSync(join(dir, 'journal'), 0);
    appendFileSync(join(dir, 'journal'), whole.subarray(0, cut));
    const journal = new Journal(dir);
    expect([...journal.readAll().keys()]).toEqual([idOf(1)]);
    journal.append(accepted(3));
    expect([...new Journal(dir).readAll().keys()]).toEqual([idOf(1), idOf(3)]);
    expect(new Journal(dir).find(idOf(3))).toEqual(entry(3));
  }
});

test('a key that looks like another command’s id misleads nobody', () => {
  const journal = new Journal(dir);
  journal.append(accepted(1, { key: idOf(2) as string as ClientKey }));
  expect(journal.find(idOf(2))).toBeUndefined();
  journal.append(accepted(2));
  expect(journal.find(idOf(2))).toEqual(entry(2));
});

test('rewritten, it says the same of what was kept', () => {
  const journal = new Journal(dir);
  for (const n of [1, 2, 3]) journal.append(accepted(n));
  journal.append({ v: 1, fact: 'sandbox_died', execId: idOf(3), at: 2 as TimestampMs, reason: 'expired' });
  const kept = [...journal.readAll().values()].slice(1);
  journal.rewrite(kept);
  journal.append(accepted(4));
  expect([...new Journal(dir).readAll().values()]).toEqual([...kept, entry(4)]);
});
