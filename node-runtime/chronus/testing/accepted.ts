/** Journal lines of commands for unit tests. */
import type { ClientKey, ExecId } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Accepted } from '../journal.ts';

export const idOf = (n: number): ExecId => `ex-${n.toString(16).padStart(24, '0')}` as ExecId;

export const accepted = (n: number, change: Partial<Accepted> = {}): Accepted => ({
  v: 1,
  fact: 'accepted',
  execId: idOf(n),
  key: `key-${n}` as ClientKey,
  bodyHash: 'hash',
  at: n as TimestampMs,
  stdin: 'none',
  timeoutMs: 0,
  outputLimitBytes: 100,
  onFull: 'truncate',
  terminal: false,
  ...change,
});
