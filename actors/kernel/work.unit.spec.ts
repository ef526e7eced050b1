import { expect, test } from 'vitest';
import type { TimestampMs } from '#bus/units.ts';
import type { StoredCommit } from '../ports/event-log.ts';
import { counterAddress } from './testing/counter.ts';
import { backoffMs, changesOfWork, deadlineMeta, reportMeta } from './work.ts';

const effect = (key: string) => ({ key, type: 'do' });

test('what is due and runs is left alone, by key', () => {
  expect(changesOfWork(['a', 'b'], [effect('b'), effect('c')])).toEqual({ stop: ['a'], start: [effect('c')] });
  expect(changesOfWork([], [])).toEqual({ stop: [], start: [] });
});

test('a report is named after its effect and the commit it was read from, a deadline after what was armed', () => {
  const stored = { commit: { actorId: 'counter-1', version: 4, commandId: 'cmd', correlationId: 'corr', principal: 'p' } } as StoredCommit;
  const at = 9 as TimestampMs;
  expect(reportMeta(effect('launch'), stored, at)).toMatchObject({ commandId: 'counter-1:launch:4', causationId: 'cmd', correlationId: 'corr', at });
  const deadline = { kind: 'idle', version: 2, at: 7 as TimestampMs };
  expect(deadlineMeta(counterAddress(), deadline, stored, at)).toMatchObject({ commandId: 'counter-1:deadline:idle:2:7', principal: 'platform', at });
});

test('pauses double up to their limit', () => {
  expect([1, 2, 3, 10, 1_000].map((n) => backoffMs(n, 50, 2_000))).toEqual([50, 100, 200, 2_000, 2_000]);
});
