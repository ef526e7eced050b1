export const NODES_LIMITS = {
  /** A bus that does not answer an operator by then is down. */
  connectMs: 5_000,
  /** Every Edge beats once a second: who is not heard in this time is silent. */
  listenMs: 1_500,
  /** How often a drain looks again. */
  drainPollMs: 1_000,
  /** Stops on their way at a time. */
  stopsInFlight: 64,
} as const;
