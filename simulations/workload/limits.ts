/** How patient a client is; as the SDK. */
export const TENANT_LIMITS = {
  callMs: 10_000,
  /** A create that was not answered is repeated, with the same key. */
  repeatMs: 1_000,
  /** An end that is not confirmed is asked for again. */
  endAgainMs: 10_000,
  /** What may have been missed is asked for this often. */
  lookAgainMs: 15_000,
  /** An owner renews the lease of its job so often within it. */
  renewalsPerLease: 3,
  /** Steps of a second in which what is to end gradually is ended. */
  finishesPerSecond: 10,
} as const;
