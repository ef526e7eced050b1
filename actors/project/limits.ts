export const QUOTA_LIMITS = {
  /** How long a lease may be spent from. Long enough that one commit serves thousands of creates; what a dead holder keeps from others. */
  leaseMs: 10_000,
  /** Items of one lease: a second of the fleet's creates. */
  itemsPerLease: 4_096,
  /** More than what is needed now is lent only up to this part of what is free, so that several placements find some. */
  shareOfFree: 4,
  /** A create that no Edge has admitted this long after its deadline never will be: clocks apart, and an answer on its way. */
  admissionGraceMs: 60_000,
} as const;

/** How a placement holds what it has borrowed; the simulation's placements hold it alike. */
export const QUOTA_HOLDER_LIMITS = {
  /** Items borrowed beyond the need of the moment when nothing is known of the next one; IAM lends them where there is plenty. */
  quotaPrefetch: 16,
  /** Borrowed for as long ahead as this, going by what was spent lately: a few draws per second at any rate of creates. */
  quotaAheadMs: 2_000,
  /** Unused leases go back after this long where somebody else may need them, and where nothing is limited. */
  quotaScarceIdleMs: 500,
  quotaIdleMs: 60_000,
  quotaSweepMs: 200,
  /** Draws for one request: others may take what was drawn first. */
  quotaAttempts: 3,
  quotaRetryMs: 100,
  /** Three commits on a busy bus. */
  quotaAnswerMs: 3_000,
} as const;
