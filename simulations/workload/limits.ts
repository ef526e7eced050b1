/** How patient a client is; as the SDK. */
export const TENANT_LIMITS = {
  callMs: 10_000,
  /** A create that was not answered is repeated, with the same key. */
  repeatMs: 1_000,
  /** An end that is not confirmed is asked for again. */
  endAgainMs: 10_000,
  /** What may have been missed is asked for this often. */
  lookAgainMs: 15_000,
} as const;
