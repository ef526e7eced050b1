export const CONTAINER_LIMITS = {
  /** Launches at a time: the launcher is one process, more would only queue in it. */
  launchesInFlight: 16,
  /** Sizes of disks that the node keeps an empty one of, some hundred KiB each. */
  diskTemplates: 64,
  /** Aether ends its sandbox this long after the total life: the Edge is expected to have ended it before. */
  hardLifeGraceMs: 60_000,
} as const;
