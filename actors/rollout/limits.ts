import type { DurationMs } from '#bus/units.ts';

export const ROLLOUT_ACTOR_LIMITS = {
  /** To make the sandboxes and start the worker: a burst of thousands may wait for room. */
  preparingMs: 1_800_000 as DurationMs,
  endingMs: 120_000 as DurationMs,
  /** Workers of one episode; nodes that die under it more often than this are not chance any more. */
  attempts: 5,
} as const;
