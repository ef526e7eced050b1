export const REQUEST_LIMITS = {
  /** Nodes tried for one item. When this many, each chosen as the least loaded of a sample, refuse in a row, the fleet is full. */
  attemptsPerItem: 6,
} as const;
