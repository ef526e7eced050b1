export const EPISODE_LIMITS = {
  /** Members of a job that are told something at a time. */
  membersInFlight: 64,
  membersPage: 500,
  /** Episodes whose sandboxes are being ended at a time. */
  cleanUpsInFlight: 64,
  /** Between two looks at members that are not at their goal yet. */
  membersPauseMinMs: 100,
  membersPauseMaxMs: 2_000,
  /** For one sandbox of an episode, a burst of thousands included. */
  createTimeoutMs: 600_000,
  /** For a snapshot that a worker asks for. */
  snapshotTimeoutMs: 300_000,
} as const;
