/**
 * What whoever drives a host has to do about what it adopts: which effects to start and to stop, when to look at deadlines,
 * and under which names their results come back. Pure; the driver of a role and the simulation both follow it.
 */
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { StoredCommit } from '../ports/event-log.ts';
import type { CommandMeta } from './commit.ts';
import type { Deadline, Effect } from './definition.ts';

/** Keys of what runs and is not due any more, and what is due and does not run yet. */
export const changesOfWork = <F extends Effect>(
  running: Iterable<string>,
  due: readonly F[],
): { readonly stop: readonly string[]; readonly start: readonly F[] } => {
  const keys = new Set(running);
  const start = due.filter(({ key }) => !keys.has(key));
  for (const { key } of due) keys.delete(key);
  return { stop: [...keys], start };
};

/** The command that reports an effect done for a state: named after the effect and the commit it was read from. */
export const reportMeta = ({ key }: Pick<Effect, 'key'>, { commit }: StoredCommit, at: TimestampMs): CommandMeta => {
  const { actorId, version, commandId, correlationId, principal, traceparent } = commit;
  return { commandId: `${actorId}:${key}:${version}`, correlationId, causationId: commandId, principal, traceparent, at };
};

/** The command that says a deadline has passed. */
export const deadlineMeta = ({ id }: ActorAddress, { kind, version, at: dueAt }: Deadline, { commit }: StoredCommit, at: TimestampMs): CommandMeta => ({
  commandId: `${id}:deadline:${kind}:${version}:${dueAt}`,
  correlationId: commit.correlationId,
  causationId: commit.commandId,
  principal: 'platform',
  at,
});

export const RETRY_LIMITS = {
  /** Pauses between repetitions of an append whose outcome is unknown: 50 ms doubling to 2 s; a leader change takes 5–8 s. */
  appendRetryMinMs: 50,
  appendRetryMaxMs: 2_000,
  /** Pauses between attempts to load an actor, and how many before its waiting commands are answered with the error. */
  loadRetryMs: 200,
  loadAttempts: 50,
  /** Pauses between repetitions of an effect that failed for an infrastructure reason. */
  effectRetryMinMs: 100,
  effectRetryMaxMs: 5_000,
} as const;

/** Exponential pause for the n-th repetition (1, 2, …), without jitter: a node's own retries do not form a herd. */
export const backoffMs = (repetition: number, minMs: number, maxMs: number): number => Math.min(maxMs, minMs * 2 ** Math.min(repetition - 1, 20));
