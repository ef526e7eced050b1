export const PORT_LIMITS = {
  /** As the JetStream adapter sets it. A run at full scale may take less: the memory of ids is most of what a stream keeps. */
  duplicateWindowMs: 120_000,
  /** nats-server's default `max_payload`. */
  maxPayloadBytes: 1_048_576,
  /** As the JetStream adapter waits for the server's answer. */
  answerMs: 5_000,
  ackWaitMs: 30_000,
  queuedCommands: 1_000_000,
  /** What a handler failed on comes back after this. */
  failedHandlerRetryMs: 1_000,
  /** Slots of a memory of ids at the start, a power of two; it grows as needed. */
  idSlotsStart: 256,
} as const;
