export const APISERVER_LIMITS = {
  /** How long `ready` is held back for the projection. */
  projectionStartMs: 30_000,
  /** Requests being answered at a time; beyond it OVERLOADED. */
  inFlight: 2_048,
  /** How long a life-cycle command waits for the Edge's decision before it is answered `pending`. */
  decisionWaitMs: 5_000,
  /** Life-cycle commands that an Edge has not taken by then are dropped, typed. */
  commandDeadlineMs: 300_000,
  /** Creates that wait for a placement: of one project, and of one lane. A group counts as one: its chunks come in portions. */
  waitingPerProject: 1_024,
  waitingPerLane: 4_096,
  /** What a client is told to wait when these are full: a lane places some thousands in that time. */
  retryAfterMs: 500,
  /** A create of which no placement says that its turn has come is not counted any longer than this. */
  waitingForgottenMs: 30_000,
  /** Tries to store a command whose outcome is unknown, with the same id each time. */
  enqueueAttempts: 20,
  enqueueRetryMs: 250,
  /** How long one call to fork waits for the capture before it is answered `pending`; looks at the log meanwhile, ever more slowly. */
  forkWaitMs: 5_000,
  forkLookFirstMs: 4,
  forkLookSlowestMs: 64,
  /** Commits since the capture began among which its failure is looked for: one or two, unless others change the sandbox too. */
  forkCommitsLooked: 64,
  /** Longest wait for a projection to reach `atLeast`. */
  atLeastWaitMs: 10_000,
  /** Bytes of one page of a list or a history. */
  pageBytes: 786_432,
} as const;
