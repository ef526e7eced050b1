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
