/** Bounds of the file service. Those that clients see are in `bus-schemas/limits.ts`, the worker's own in `aether/limits.h`. */
export const FILES_LIMITS = {
  /** Workers of one sandbox that do short operations at a time; more operations wait for one. */
  shortWorkers: 4,
  /** Connections being made to one agent at a time: it keeps eight and drops the oldest beyond, which is the commands'. */
  connecting: 2,
  /** Short operations of one sandbox that wait or run; one more is told OVERLOADED. */
  shortOperations: 256,
  /** An idle worker is a process in the sandbox: it stays only as long as the next call of a row may take to come. */
  idleWorkerMs: 5_000,
  /** A worker that says nothing for this long is given up: stopped by the sandbox, or stuck in a file system that hangs. */
  silentWorkerMs: 60_000,
  /** As above for the removal of a tree and for the end of an upload, which say nothing until they are done. */
  silentRemovalMs: 600_000,
  silentCommitMs: 600_000,
  /** Sessions open at a time. Each is a process in the sandbox, a descriptor here and at most `windowBytes`. */
  sessionsPerSandbox: 16,
  sessionsPerEdge: 256,
  /** How far a reader may be ahead of what it has acknowledged, and what an upload may have unsent: eight chunks. */
  windowBytes: 8 * 262_144,
  /** Requests of one session that wait at a time. */
  waitersPerSession: 32,
  /** Answers to keyed operations that are kept for a repetition of the call, per sandbox, and how long. */
  keptAnswers: 256,
  keptAnswerMs: 60_000,
  /** Paths that one stream names as not carried; the others are counted. */
  namedOmissions: 1_000,
  /** Body of one frame to a worker (`FILE_FRAME_MAX_BYTES`). */
  requestBytes: 262_208,
} as const;
