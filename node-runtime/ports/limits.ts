/** Bounds of the Edge's exchanges with servers inside. Those that clients see are in `bus-schemas/limits.ts`. */
export const EXCHANGE_LIMITS = {
  /** Connections of one sandbox being made at a time: its agent's queue of newcomers is longer. */
  dialsInFlight: 16,
  /** How long a sender is kept waiting for a server that does not read, before it is asked to offer the same again: less than its patience. */
  sendPatienceMs: 1_000,
  /** After the head of an answer, how long its first bytes may take to go along in the same message. */
  headPatienceMs: 2,
  /** Between two looks for exchanges that nobody asks about any more. */
  sweepMs: 10_000,
} as const;
