/** From what the kernel and Aether say of a command's end to what a client is told. Pure. */
import { constants } from 'node:os';
import type { Fault, Retry } from '#bus/errors.ts';
import type { ExecId } from '#bus/ids.ts';
import type { DropReason, ExecReason, ExecView, StreamSummary } from '#bus/op/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Dropped, Exit, StreamCounts } from '../aether/wire.ts';

/** Some numbers have a second, older name (IOT, POLL, UNUSED), listed later: reversed, so that the first one stays. */
const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name.slice(3)]),
);
const SIGNAL_MASK = 0x7f;
const SIGNAL_EXIT_BASE = 128;

/** Whose failure an end is, and whether the same command may be tried again. */
const BLAME: Record<ExecReason, { readonly fault: Fault; readonly retry: Retry }> = {
  exited: { fault: 'agent', retry: 'never' },
  signaled: { fault: 'agent', retry: 'never' },
  timeout: { fault: 'agent', retry: 'never' },
  cancelled: { fault: 'agent', retry: 'never' },
  oom: { fault: 'environment', retry: 'never' },
  expired: { fault: 'policy', retry: 'never' },
  sandbox_died: { fault: 'infra', retry: 'later' },
  infra: { fault: 'infra', retry: 'later' },
};

export type Ending = Pick<ExecView, 'endedAt' | 'exitCode' | 'signal' | 'reason' | 'fault' | 'retry' | 'pipesOpen' | 'oomKills'>;

const DROPPED: Record<Dropped, DropReason> = { limit: 'limit', released: 'lease_lost', 'no-space': 'no_space' };

const DROPPED_BY: Record<DropReason, Dropped> = { limit: 'limit', lease_lost: 'released', no_space: 'no-space' };

export const summaryOf = ({ totalBytes, storedBytes, discardedBytes, dropped }: StreamCounts): StreamSummary => ({
  totalBytes,
  storedBytes,
  discardedBytes,
  truncated: totalBytes > storedBytes,
  dropped: dropped === null ? null : DROPPED[dropped],
});

/** The reverse: of a stream as a client was told of it. */
export const countsOf = ({ totalBytes, storedBytes, discardedBytes, dropped }: StreamSummary): StreamCounts => ({
  totalBytes,
  storedBytes,
  discardedBytes,
  dropped: dropped === null ? null : DROPPED_BY[dropped],
});

const signalOf = (waitStatus: number): number => waitStatus & SIGNAL_MASK;

/** What a shell would call the exit code: 128 + n for a death by signal n. */
const exitCodeOf = (waitStatus: number): number => (signalOf(waitStatus) === 0 ? (waitStatus >> 8) & 0xff : SIGNAL_EXIT_BASE + signalOf(waitStatus));

const reasonOf = ({ reason, waitStatus }: Exit): ExecReason => {
  if (reason === 'oom') return 'oom';
  if (reason === 'timeout') return 'timeout';
  if (reason === 'killed') return 'cancelled';
  return signalOf(waitStatus) === 0 ? 'exited' : 'signaled';
};

export const endingOf = (exit: Exit): Ending => {
  const exitCode = exitCodeOf(exit.waitStatus);
  const reason = reasonOf(exit);
  const signal = signalOf(exit.waitStatus);
  const succeeded = reason === 'exited' && exitCode === 0;
  return {
    endedAt: exit.endedAtMs as TimestampMs,
    exitCode,
    signal: signal === 0 ? null : (SIGNAL_NAMES.get(signal) ?? `RT${signal}`),
    reason,
    fault: succeeded ? null : BLAME[reason].fault,
    retry: succeeded ? null : BLAME[reason].retry,
    pipesOpen: exit.pipesOpen,
    oomKills: exit.oomKills,
  };
};

/** Why a command left no record: its sandbox's life was over, or the sandbox ended otherwise, or the record itself was lost. */
export type Unrecorded = 'expired' | 'sandbox_died' | 'infra';

/** An end that left no record: nobody knows how it went, and unknown is never 0. */
export const endingWithoutRecord = (reason: Unrecorded, endedAt: TimestampMs): Ending => ({
  endedAt,
  exitCode: null,
  signal: null,
  reason,
  ...BLAME[reason],
  pipesOpen: false,
  oomKills: 0,
});

export type Running = {
  readonly execId: ExecId;
  readonly startedAt: TimestampMs;
  readonly terminal: boolean;
  readonly replayed: boolean;
  readonly stdout: StreamCounts;
  readonly stderr: StreamCounts;
};

export const viewOf = ({ execId, startedAt, terminal, replayed, stdout, stderr }: Running, ending: Ending | undefined): ExecView => ({
  execId,
  state: ending ? 'ended' : 'running',
  startedAt,
  endedAt: null,
  exitCode: null,
  signal: null,
  reason: null,
  fault: null,
  retry: null,
  pipesOpen: false,
  oomKills: 0,
  terminal,
  ...ending,
  replayed,
  stdout: summaryOf(stdout),
  stderr: summaryOf(stderr),
});
