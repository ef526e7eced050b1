export const UP_LIMITS = {
  /** Pauses before a role that died is started again: 50 ms doubling to 5 s, reset after it lived for a while. */
  restartMinMs: 50,
  restartMaxMs: 5_000,
  stableAfterMs: 10_000,
  /** A role that says neither `ready` nor `failed` by then is taken for hung. */
  readyTimeoutMs: 60_000,
  /** How long the Edge may take to end every sandbox at Ctrl-C before it is told to leave them. */
  drainTimeoutMs: 60_000,
  /** Between SIGTERM and SIGKILL of a role that has nothing left to save. */
  stopTimeoutMs: 5_000,
} as const;
