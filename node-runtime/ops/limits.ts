/** Bounds of what operators look at. */
export const OPS_LIMITS = {
  /** Questions of a scraper or a supervisor answered at one time; more are refused with 503. Two of each is what there is. */
  requestsInFlight: 16,
  /** Head of a request: ours are `GET /metrics` and what a scraper adds. */
  headBytes: 8_192,
  /** A peer that sends or reads slower than this is cut off. */
  requestMs: 10_000,
  /** What readiness and metrics ask of the bus; Prometheus gives up after 10 s. */
  askMs: 2_000,
  /** Consumers whose depth is asked for in one scrape; a null fleet has one per Edge, and its sum is not looked at. */
  consumersAsked: 40,
  /** Commits that a projection may be behind: half a second of the planned rate of a scale unit (5,000 creates/s, 5 commits each). */
  projectionLagCommits: 12_500,
  /** Commits that a reader of the log may be behind: as for projections, a second of the planned rate; and how many for how long without one read. */
  readingLagCommits: 25_000,
  readingStillCommits: 64,
  readingStillMs: 30_000,
  /** Nodes beat each second: a watcher that has heard none of those it knows for so long hears nothing. */
  beatlessMs: 10_000,
  /** Values of one label that are told apart; what comes beyond is `other`. Verbs, operations, codes and events are all fewer. */
  labelValues: 200,
} as const;

/** Seconds. From a decision in memory to the slowest launch that is waited for. */
export const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
