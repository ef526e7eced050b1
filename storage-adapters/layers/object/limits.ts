export const OBJECT_LAYER_LIMITS = {
  /** Bytes of one chunk: the bus' payload limit is 1 MiB, and larger chunks hold up the events behind them on the same connection. */
  chunkBytes: 256 * 1024,
  /**
   * How long one step is tried again over an outage before the caller is told BUS_UNAVAILABLE. Leader changes take 5 to 8 s, a restart of
   * the bus some more; whoever ordered the whole repeats it after that.
   */
  outageMs: 30_000,
  /** How often an info that somebody else has just replaced is looked at again; each time somebody got through. */
  conflicts: 64,
  /** How long a reader waits for what it knows to be stored; then it goes on with BUS_UNAVAILABLE. */
  catchUpMs: 10_000,
  /** Progress of a transfer is told each time this much has come. */
  reportBytes: 64 * 1024 * 1024,
  /** Between two looks for uploads of dead writers: a live one adds a chunk or the info well within it, outages included. */
  abandonedMs: 3_600_000,
} as const;
