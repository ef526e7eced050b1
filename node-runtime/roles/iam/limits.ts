export const IAM_LIMITS = {
  /** Requests of roles being answered at a time; beyond it they are told `later`. */
  inFlight: 512,
  /** How often leases are looked through for those that have ended or whose settlement stopped half-way. */
  sweepMs: 500,
  /** Longest wait for the fold to read the log as far as is asked. */
  foldWaitMs: 10_000,
  /** What a holder is told to wait while others give back. */
  recallMs: 50,
  /** What a holder is told to wait when two services were at the same project. */
  raceMs: 20,
  /** Tries to create the root project while the bus elects leaders. */
  rootAttempts: 40,
} as const;
