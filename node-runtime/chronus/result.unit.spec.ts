import { describe, expect, test } from 'vitest';
import type { ExecId } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Exit } from '../aether/wire.ts';
import { endingOf, endingWithoutRecord } from './result.ts';

const NOTHING = { totalBytes: 0, storedBytes: 0, discardedBytes: 0, dropped: null };
const exit = (change: Partial<Exit>): Exit => ({
  execId: 'ex-0123456789abcdef01234567' as ExecId,
  startedAtMs: 1,
  endedAtMs: 2,
  stdout: NOTHING,
  stderr: NOTHING,
  oomKills: 0,
  waitStatus: 0,
  reason: 'ended',
  pipesOpen: false,
  ...change,
});
const code = (value: number): number => value << 8;
const CORE_DUMPED = 0x80;

describe('endingOf', () => {
  test.each([
    ['success', { waitStatus: 0 }, { exitCode: 0, signal: null, reason: 'exited', fault: null, retry: null }],
    ['exit 7', { waitStatus: code(7) }, { exitCode: 7, signal: null, reason: 'exited', fault: 'agent', retry: 'never' }],
    ['exit 137 is no signal', { waitStatus: code(137) }, { exitCode: 137, signal: null, reason: 'exited' }],
    ['a signal', { waitStatus: 15 }, { exitCode: 143, signal: 'TERM', reason: 'signaled', fault: 'agent' }],
    ['a signal with a core', { waitStatus: 6 | CORE_DUMPED }, { exitCode: 134, signal: 'ABRT', reason: 'signaled' }],
    ['a real-time signal', { waitStatus: 40 }, { exitCode: 168, signal: 'RT40', reason: 'signaled' }],
    ['time-out', { waitStatus: 9, reason: 'timeout' }, { exitCode: 137, signal: 'KILL', reason: 'timeout', fault: 'agent' }],
    ['killed by request', { waitStatus: 9, reason: 'killed' }, { exitCode: 137, signal: 'KILL', reason: 'cancelled' }],
    ['out of memory, told by the kernel', { waitStatus: 9, reason: 'oom' }, { exitCode: 137, reason: 'oom', fault: 'environment', retry: 'never' }],
  ] as const)('%s', (_, change, expected) => {
    expect(endingOf(exit(change))).toMatchObject(expected);
  });
});

test('unknown is never 0', () => {
  expect(endingWithoutRecord('sandbox_died', 5 as TimestampMs)).toMatchObject({
    exitCode: null,
    signal: null,
    reason: 'sandbox_died',
    fault: 'infra',
    retry: 'later',
    endedAt: 5,
  });
});
