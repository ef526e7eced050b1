export const FORK_LIMITS = {
  /** A capture is kept at least this long: creates that stand on it may still be on their way. */
  graceMs: 10 * 60_000,
  sweepMs: 5 * 60_000,
} as const;

export const PACKING_LIMITS = {
  /** Packings of one node at a time: each reads and writes as fast as the disk goes. */
  atOnce: 2,
  /** Data files of earlier images whose chunks may be used again; each is a file that a mount holds open. The newest go first. */
  earlierFiles: 24,
  /** A packer that says nothing for this long hangs; it reads some GB per second. */
  silenceMs: 540_000,
  /** One line of the packer: a path of the deepest tree, percent-encoded. */
  lineBytes: 4 * 1024 * 1024,
} as const;
