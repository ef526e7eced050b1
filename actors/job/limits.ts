import type { DurationMs } from '#bus/units.ts';

export const JOB_ACTOR_LIMITS = {
  /** For moving every member of the largest job (32,000) to another state; what is not there by then is counted as left. */
  goalMs: 600_000 as DurationMs,
} as const;
