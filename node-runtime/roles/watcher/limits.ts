export const WATCHER_LIMITS = {
  /** How often silences are looked at: a fraction of every limit they are compared with. */
  tickMs: 500,
  /** A loss is said again for as long as a client may have been reconnecting. */
  noticeRepeats: 20,
  noticeEveryMs: 3_000,
} as const;
