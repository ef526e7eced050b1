export const REQUEST_LIMITS = {
  /** Nodes tried for one item. When this many, each chosen as the least loaded of a sample, refuse in a row, the fleet is full. */
  attemptsPerItem: 6,
  /**
   * Chunks of one group that wait on their lane at a time: enough to keep every placement busy, few enough that other requests of the
   * lane wait behind 16 messages of a burst and not behind 128.
   */
  chunksAhead: 16,
  /** How long a node keeps what it holds for an undecided group beyond the group's deadline: a decision and its way to the node. */
  holdGraceMs: 300_000,
} as const;
