export const APISERVER_LIMITS = {
  /** Requests being answered at a time; beyond it OVERLOADED. */
  inFlight: 2_048,
  /** How long a life-cycle command waits for the Edge's decision before it is answered `pending`. */
  decisionWaitMs: 5_000,
  /** Life-cycle commands that an Edge has not taken by then are dropped, typed. */
  commandDeadlineMs: 300_000,
  /** Tries to store a command whose outcome is unknown, with the same id each time. */
  enqueueAttempts: 20,
  enqueueRetryMs: 250,
  /** Longest wait for a projection to reach `atLeast`. */
  atLeastWaitMs: 10_000,
  /** Bytes of one page of a list or a history. */
  pageBytes: 786_432,
} as const;
