export const KERNEL_LIMITS = {
  /** Commands waiting for one actor; a caller beyond it is told OVERLOADED. A sandbox sees a handful in its life. */
  mailboxLength: 256,
  /** Conflicts in a row on one command before the host gives up on it: two live writers are a fencing bug. */
  conflictRetries: 16,
  /** Commits read back for a command that comes again after others; what lies further back was answered long ago. */
  recalledCommits: 64,
} as const;
