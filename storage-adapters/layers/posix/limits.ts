export const POSIX_LAYER_LIMITS = {
  /** Read and hashed at a time: large enough that SHA-256, not the system calls, is the cost. */
  chunkBytes: 1024 * 1024,
  /** Between two tries at a lock that is held for one rename or one unlink. */
  lockPollMs: 2,
  /** Holders of the store lock do two system calls; far more means a hung disk, which is reported. */
  lockWaitMs: 30_000,
  /** Records read at once by `list`: bounds open descriptors. */
  parallelReads: 32,
  /** Records kept in memory by `lookup`; 60 bytes of key and some 300 of record each. Beyond it the oldest go. */
  cachedRecords: 20_000,
  /** A cached record is trusted only when its file is older than this: two changes within one clock tick of the file system look alike. */
  racyMs: 50,
} as const;
