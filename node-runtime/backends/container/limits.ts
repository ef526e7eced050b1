export const CONTAINER_LIMITS = {
  /** Launches at a time: the launcher is one process, more would only queue in it. */
  launchesInFlight: 16,
  /** Aether ends its sandbox this long after the total life: the Edge is expected to have ended it before. */
  hardLifeGraceMs: 60_000,
} as const;
