/** Every bound of the JetStream adapter, with where the number comes from. */
export const JETSTREAM_LIMITS = {
  /** Requests and publishes whose answer is awaited. Throughput is flat from 256 on; several tens of actors' worth above it. */
  outstandingRequests: 4_096,
  /** An answer later than this is `unknown`. A leader change takes 5–8 s, so one or two repetitions bridge it. */
  requestTimeoutMs: 5_000,

  /** Commits a tail may hold that its handler has not seen yet: at the payload limit 64 MiB. */
  tailBatch: 64,
  /** How long a tail lets commits gather: what a reader of a projection waits at most, and one wake-up instead of many. */
  tailLingerMs: 20,
  /** Same for reads that collect everything anyway; keeps one burst below the server's 64 MB of pending output per client. */
  readBatch: 256,
  /** Deliveries one pull request may bring; the consumer's `max_ack_pending` is the real bound, this only ends old requests. */
  queueBatch: 1_000,

  /** Life of one pull request; then the next one is sent. */
  pullExpiresMs: 30_000,
  /** The server's sign of life while there is nothing to deliver. */
  pullHeartbeatMs: 1_000,
  /** Silence after which a pull request is given up: three missed heartbeats. */
  pullSilenceMs: 3_500,
  /** Pause before a pull request that found no consumer yet is sent again. */
  pullAgainMs: 20,
  /** A read that gets no further message within this time is given up. */
  readStallMs: 5_000,

  /** Pause before a broken tail or consumer is opened again; doubles up to the maximum. */
  reopenMinMs: 50,
  reopenMaxMs: 2_000,

  /** Life of a reading consumer that its owner has forgotten (its process died). */
  idleConsumerMs: 60_000,
  /** Unacknowledged deliveries come back after this time; handlers extend it while they work. */
  ackWaitMs: 30_000,
  /** How long acknowledgements wait for a message to travel with: as commits do in a tail, and nothing beside `ackWaitMs`. */
  ackLingerMs: 20,
  /** A command whose handler threw comes back after this. */
  failedHandlerRetryMs: 1_000,
  /** How long a deleted object is remembered: longer than any follower of a bucket is cut off and alive. */
  deletedObjectMs: 7 * 24 * 3_600_000,
  /** Consumers per stream: an Edge has one, a lane has one, every tail has one. The server's own implicit limit is 1,000. */
  consumersPerStream: 10_000,
  /** Commands that wait in COMMANDS altogether; beyond it the queue refuses new ones instead of eating old ones. */
  queuedCommands: 1_000_000,
  /** How long a record of a command is tried before its caller is told: two leader elections; the caller repeats its call anyway. */
  recordPatienceMs: 20_000,
  /** Memory of message ids. The expected sequence, not this window, is what keeps a commit from being stored twice. */
  duplicateWindowMs: 120_000,
} as const;
