export const JOBS_LIMITS = {
  /** After its start an instance listens this long before it takes anything: others may be there. */
  presenceListenMs: 1_100,
  /** Commits lost by a subscriber are looked for this often. */
  catchUpEveryMs: 15_000,
  /** Actors whose newest commits are read one by one; more than these are read in one go. */
  readsInFlight: 256,
  /** Commits of one read of an episode's history. */
  historyPage: 200,
  /** Bytes of one answer with commits: below the payload limit with its frame. */
  pageBytes: 786_432,
  /** Rollouts of a job that ends which are told so at a time, and how often it is looked whether they have ended. */
  rolloutsToldAtOnce: 64,
  endedLookMs: 500,
  /** How often a paused job is looked at for the episodes that wait for it, once for all of them. */
  pausedLookMs: 250,
} as const;
