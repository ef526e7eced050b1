/** Bounds of the Edge's side of Aether's channel. The agent's own are in `limits.h`. */

export const AETHER_LIMITS = {
  /** Requests of one connection that wait for an answer: Aether itself keeps 1,024 commands, each with at most a few. */
  pendingRequests: 4_096,
  /** Bytes that the socket has not taken yet; beyond, callers are told OVERLOADED before anything is sent. */
  unsentBytes: 16 * 1024 * 1024,
  /** Body of one frame (`FRAME_BODY_MAX` of `frame.h`). */
  frameBodyBytes: 1_048_576,
} as const;
