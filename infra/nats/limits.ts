/** Bounds of the embedded nats-server and of the process that looks after it. */

export const NATS_LIMITS = {
  /** The server's own default and the contract's (`bus-schemas/limits.ts`): written down so that a change is seen. */
  maxPayloadBytes: 1_048_576,
  /** Longest protocol line. A packed publish carries a reply subject of about 200 bytes; the default of 4 KiB would do, connects with JWTs want more. */
  maxControlLineBytes: 65_536,
  /** Bytes queued for one slow reader before it is cut off. The server's default. */
  maxPendingBytes: 64 * 1024 * 1024,
  /** How long a server waits for IAM's word on a client. The server's default; SDKs give up a try before, and so tell a silent IAM from a refusal. */
  signInSeconds: 2,
  /** Log file rotated at this size, this many kept. */
  logFileBytes: 10 * 1024 * 1024,
  logFiles: 3,
} as const;

export const PROCESS_LIMITS = {
  /** A store of millions of messages recovers in seconds; a cold disk takes longer. */
  readyTimeoutMs: 60_000,
  readyPollMs: 20,
  /** Configurations of thousands of clients are read in tens of milliseconds. */
  reloadTimeoutMs: 10_000,
  /** One greeting, asked every so often. */
  healthIntervalMs: 5_000,
  greetingTimeoutMs: 5_000,
  /** Greetings missed in a row before the server counts as hung: half a minute, a busy machine misses one now and then. */
  greetingsMissed: 5,
  restartFirstMs: 100,
  restartMaxMs: 5_000,
  /** A server that lived this long starts the next back-off from the beginning. */
  stableAfterMs: 30_000,
  /** A clean stop takes about 0.15 s. */
  stopTimeoutMs: 10_000,
  /** How long a new server waits for the last one's lock on the store. */
  lockWaitSeconds: 5,
  /** A free port may be taken between asking for it and listening. */
  portAttempts: 5,
} as const;
