/** Bounds of Chronus, per sandbox. Those that clients see are in `bus-schemas/limits.ts`. */
import { EXEC_LIMITS } from '#bus/limits.ts';

export const CHRONUS_LIMITS = {
  /** Ended commands whose result stays in memory: what a client that just waited asks about next. Older ones are read from their files. */
  recentCommands: 32,
  /** Callers waiting on one command (wait, read, stdin); one more is told OVERLOADED. */
  waitersPerCommand: 64,
  /** Commands of one answer to `list`, newest first: 350 bytes each, a third of a message. */
  listedCommands: 1_000,
  /** Commands journalled before the oldest ended ones are forgotten, and how many are then kept: forgetting is rare and in bulk. */
  journalEntries: EXEC_LIMITS.journalEntries,
  journalEntriesKept: Math.floor(EXEC_LIMITS.journalEntries * 0.8),
  /** Starts whose caller has left before they came, and how long they are refused: what the SDK repeats a start for (a minute). */
  abandonedCommands: 1_024,
  abandonedMs: 60_000,
  /** Readers with credit on one stream. */
  readersPerStream: 16,
  /** A window is moved when its readers have passed this part of it, or have everything. */
  windowSteps: 8,
  /** Between a change and the look for output that has expired; many commands that end at once cost one look. */
  retentionLookMs: 200,
  /** Output is reported as activity at most this often. */
  activityIntervalMs: 1_000,
  /** How long a caller that wants no waiting still waits to learn that its command could be started. */
  startPatienceMs: 5_000,
  /** Tries at asking Aether for one start, each on a new connection, before the caller is told that the outcome is unknown. */
  startTries: 3,
} as const;
