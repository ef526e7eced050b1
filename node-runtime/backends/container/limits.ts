export const CONTAINER_LIMITS = {
  /** Launches at a time: the launcher is one process, more would only queue in it. */
  launchesInFlight: 16,
  /** Sizes of disks that the node keeps an empty one of, some hundred KiB each. */
  diskTemplates: 64,
  /** Reclaims at a time: the launcher has four workers (JOBS_AT_ONCE), so that none of them is ever without work. */
  reclaimsInFlight: 8,
  /** A pause is told without what it gave back after this long, well before its own deadline: thousands are paused at once. */
  giveBackPatienceMs: 30_000,
  /** Most that one resume reads back ahead of use: half a second's work of two processors. */
  prefetchMiB: 512,
  /** Aether ends its sandbox this long after the total life: the Edge is expected to have ended it before. */
  hardLifeGraceMs: 60_000,
} as const;
