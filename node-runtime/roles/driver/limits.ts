export const DRIVER_LIMITS = {
  /** Pauses between repetitions of an append whose outcome is unknown: 50 ms doubling to 2 s; a leader change takes 5–8 s. */
  appendRetryMinMs: 50,
  appendRetryMaxMs: 2_000,
  /** Pauses between attempts to load an actor, and how many before its waiting commands are answered with the error. */
  loadRetryMs: 200,
  loadAttempts: 50,
  /** Pauses between repetitions of an effect that failed for an infrastructure reason. */
  effectRetryMinMs: 100,
  effectRetryMaxMs: 5_000,
  /** Longest wait of one Node timer (2³¹ − 1 ms); longer deadlines are re-armed. */
  timerMaxMs: 2_147_483_647,
} as const;

/** Exponential pause for the n-th repetition (1, 2, …), without jitter: a node's own retries do not form a herd. */
export const backoffMs = (repetition: number, minMs: number, maxMs: number): number => Math.min(maxMs, minMs * 2 ** Math.min(repetition - 1, 20));
