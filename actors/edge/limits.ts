import type { DurationMs } from '#bus/units.ts';

export const EDGE_ACTOR_LIMITS = {
  /** Below this a lease is lost to one slow garbage collection or one bus leader election (5–8 s). */
  leaseMsMin: 1_000 as DurationMs,
  /** Above this a dead node's sandboxes stay in doubt for too long. */
  leaseMsMax: 600_000 as DurationMs,
} as const;
