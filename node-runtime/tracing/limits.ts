export const TRACING_LIMITS = {
  /** Spans that wait to be sent; beyond it they are dropped: a trace is never worth memory that sandboxes need. A create makes some 8. */
  queuedSpans: 8_192,
  spansPerBatch: 512,
  /** How long a span waits for company. */
  batchMs: 500,
  /** A collector that takes longer loses the batch. */
  exportMs: 10_000,
} as const;
