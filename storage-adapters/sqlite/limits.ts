/** Every bound of the projection, with where the number comes from. */
import { KEY_LIMITS } from '#bus/limits.ts';

export const PROJECTION_LIMITS = {
  /** Commits in one transaction, 40 ms of it. Twice as many as 500 make a sandbox that starts a fifth cheaper: more of its commits fall together. */
  batchCommits: 1_000,
  /**
   * Under load transactions follow one another no faster than this: what readers wait more at most. The second of a sandbox's commits
   * mostly comes within it, and only the newest is written.
   */
  gatherMs: 50,
  /**
   * While so many come within `gatherMs`, and nobody waits for a sequence, they gather up to `gatherManyMs`: a sandbox's birth and start
   * then mostly fall together. Measured: 58 instead of 96 µs of processor time for each sandbox that starts.
   */
  manyCommits: 32,
  gatherManyMs: 250,
  /** A file that nobody has fed for longer is rebuilt: tombstones may have come and gone meanwhile, their rows would stay for ever. */
  offlineMs: KEY_LIMITS.tombstoneTtlMs / 2,
  /** Calls that wait for a sequence; more are told OVERLOADED. */
  waiters: 10_000,
  /** Rows of one page. */
  pageRows: 500,
  /** Pause before a transaction that failed (disk full, locked) is tried again. */
  retryMs: 1_000,
  /** A locked file is waited for this long: a backup may hold it for a moment. */
  busyMs: 5_000,
} as const;
