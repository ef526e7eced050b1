export const PLACEMENT_LIMITS = {
  /** Requests being placed at a time by this process. */
  inFlight: 64,
  /** A create that finds no living node is given back for this long at a time, until its own deadline. */
  noNodeRetryMs: 250,
  /** After a failed append or forward the message is given back. */
  retryMs: 250,
  /** Request actors kept in memory; the oldest idle ones are dropped and loaded again when needed. */
  actorsMax: 4_096,
} as const;
