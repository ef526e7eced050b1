export const IAM_LIMITS = {
  /** Requests of roles being answered at a time; beyond it they are told `later`. */
  inFlight: 512,
  /** How often leases are looked through for those that have ended or whose settlement stopped half-way. */
  sweepMs: 500,
  /** Longest wait for the fold to read the log as far as is asked. */
  foldWaitMs: 10_000,
  /** What a holder is told to wait while others give back. */
  recallMs: 50,
  /** What a holder is told to wait when two services were at the same project. */
  raceMs: 20,
  /** Tries to create the root project while the bus elects leaders. */
  rootAttempts: 40,
  /** A connection's token ends after this long at the latest, and with it what was granted when it began; clients connect again by themselves. */
  tokenLifeMs: 900_000,
  /** For secrets, whose connections cannot be found and ended when they are revoked. */
  secretTokenLifeMs: 120_000,
  /** Subscriptions of one connection: an SDK needs a handful, a watcher of many projects some dozens. */
  subscriptionsPerClient: 1_000,
  /** Clients of one server that are looked through when a credential was revoked. */
  connectionsPerServer: 65_536,
  kickGatherMs: 20,
  /** Commits that one page of an audit reads, over all shards: some megabytes, and well within the time of one request. */
  auditPageCommits: 2_000,
  auditShardMin: 64,
} as const;
