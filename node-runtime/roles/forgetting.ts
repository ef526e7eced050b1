/**
 * Forgets actors whose life and retention are over: one tombstone replaces the whole history. @paper §3.2
 *
 * Reads the last commits of a kind now and then, so nothing has to be remembered between two sweeps or two processes; a
 * tombstone expects the sequence that was read, so a commit that came meanwhile wins.
 */
import type { Shard } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { Log } from '../log/log.ts';

export const FORGETTING_LIMITS = {
  /** First sweep after the start, when the node has better things to do; then rarely: it reads every last commit. */
  firstSweepMs: 60_000,
  sweepMs: 6 * 3_600_000,
  /** Ended sandboxes that nobody deleted stay readable for audits this long. */
  auditRetentionMs: 72 * 3_600_000,
} as const;

export type ForgettingOptions = {
  readonly eventLog: EventLog;
  readonly shards: readonly Shard[];
  readonly actors: Pick<ActorAddress, 'kind'> & Partial<ActorAddress>;
  /** When an actor may be forgotten, ms since the epoch; null while it may not. */
  readonly forgettableAt: (stored: StoredCommit) => number | null;
  readonly clock: Clock;
  readonly log: Log;
};

export const startForgetting = (o: ForgettingOptions): { sweep(): Promise<number>; stop(): void } => {
  const sweepAndSay = () => void sweep(o).catch((thrown: unknown) => o.log.warn('forgetting.failed', { message: (thrown as Error).message }));
  const first = setTimeout(sweepAndSay, FORGETTING_LIMITS.firstSweepMs).unref();
  const timer = setInterval(sweepAndSay, FORGETTING_LIMITS.sweepMs).unref();
  return {
    sweep: () => sweep(o),
    stop: () => {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
};

const sweep = async ({ eventLog, shards, actors, forgettableAt, clock, log }: ForgettingOptions): Promise<number> => {
  let forgotten = 0;
  for (const shard of shards) {
    for (const stored of await eventLog.lastOfEach({ ...actors, shard })) {
      const at = forgettableAt(stored);
      if (at === null || at > clock.now()) continue;
      const { outcome } = await eventLog.forget(stored.address, stored.sequence, KEY_LIMITS.tombstoneTtlMs);
      if (outcome === 'applied') forgotten += 1;
    }
  }
  log.info('forgetting.swept', { kind: actors.kind, forgotten });
  return forgotten;
};
