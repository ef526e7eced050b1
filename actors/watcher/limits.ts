/** Bounds of the watcher's judgement: what is odd, for how long it must be, and when silence is a loss. */
export const HEALTH_POLICY = {
  /** Beats come each second; three missed ones are a reason to send new work elsewhere. */
  silentAfterMs: 3_500,
  /** Beats in a row that must look bad before a node is suspect: one slow second is none. */
  badBeats: 3,
  /** Beats in a row that must look good before it is healthy again: a node that flaps stays suspect. */
  goodBeats: 5,
  /** Below this the bus, the logs and the kernel of a node fight for the last bytes; the Edge refuses at half of it. */
  diskFloorMiB: 1_024,
  memoryFloorMiB: 1_024,
  /** Share of ten seconds in which some task waited for memory: a node that thrashes. */
  memoryPressurePercent: 40,
  /** Errors that the kernel logged between two beats: a disk or a memory bank that fails logs many, a stray driver one. */
  kernelErrorsPerBeat: 3,
  /** Wall clocks further apart than this make deadlines unfair; NTP keeps them within milliseconds. */
  clockSkewMs: 5_000,
  /** Ten of the paper's units (@paper §2.4). */
  nodes: 1_600,
} as const;

export const LEASE_POLICY = {
  /**
   * What a watcher waits beyond the lease. The holder counts from before it sent the renewal and fences itself at the lease's
   * end; this is for its last second, for freezing thousands of sandboxes, and for clocks that run at different speeds.
   */
  graceMs: 5_000,
  /**
   * How long the log must have been readable, the lease unrenewed, before a loss is declared: after an outage of the bus every
   * Edge gets the chance to renew first. Edges try each second.
   */
  confirmMs: 3_000,
} as const;
