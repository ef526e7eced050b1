/** Bounds of the in-memory adapters; where they stand for a server's bound they have its value. */
export const MEMORY_LIMITS = {
  /** As JetStream's adapter sets it. */
  duplicateWindowMs: 120_000,
  /** nats-server's default `max_payload`. */
  maxPayloadBytes: 1_048_576,
  ackWaitMs: 30_000,
  queuedCommands: 1_000_000,
  /** What a handler failed on comes back after this. */
  failedHandlerRetryMs: 1_000,
} as const;
