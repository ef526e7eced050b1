export const TRAINER_LIMITS = {
  /** Renewals per lease: one may fail, and another, before it is over. */
  renewalsPerLease: 4,
  /** Requests held in memory that arrived with their commits; beyond it only their places are remembered, and they are fetched. */
  requestsHeld: 1_024,
  /** Lost news of turns is looked for this often, and after each reconnect. */
  catchUpEveryMs: 10_000,
  rolloutsPage: 2_000,
  /** Starts of rollouts under way at a time, in calls of `rolloutsPerCall` each. */
  startsInFlight: 4,
  rolloutsPerCall: 50,
  eventsPage: 200,
  /** For moving every member of a large job. */
  goalTimeoutMs: 600_000,
  goalLookMs: 150,
  membersPage: 500,
  /** Between two tellings of how far the members are: each is a list of all of them. */
  progressMs: 2_000,
} as const;
