/** Bounds of the launcher's client. The launcher's own are in `limits.h`. */
export const LAUNCHER_LIMITS = {
  /** Longest body of a frame, as in `frame.h`. */
  frameBodyBytes: 1 << 20,
  /** Requests without an answer: a full node that is frozen or ended at once, twice over. Beyond, the caller waits its turn. */
  pendingRequests: 8_192,
  /** Longer than anything the launcher itself waits for (20 s): after that it hangs. */
  answerMs: 30_000,
  /** Its worker is ended after 40 s, see RECLAIM_TIMEOUT_SECONDS; the rest is the queue before it, which the Edge keeps short. */
  reclaimMs: 120_000,
  /** Longer than SWAP_TIMEOUT_SECONDS. */
  swapMs: 110_000,
  /** From exec to listening; it adopts every live sandbox in between. */
  startMs: 10_000,
  /** Bytes of the launcher's log that an error message quotes. */
  logTailBytes: 2_000,
} as const;
