/** Bounds of the production shells, by the same names. A shell's own numbers are not decisions, so they stand here once more. */
import { QUOTA_HOLDER_LIMITS } from '#actors/project/limits.ts';

export const HOST_LIMITS = {
  // node-runtime/roles/edge
  commandsInFlight: 512,
  leaseMs: 30_000,
  renewalsPerLease: 3,
  leaseTicksPerRenewal: 10,
  beatMs: 1_000,
  logRetentionMs: 600_000,
  newsLingerMs: 250,
  // node-runtime/roles/forgetting
  firstSweepMs: 60_000,
  sweepMs: 6 * 3_600_000,
  auditRetentionMs: 72 * 3_600_000,
  // node-runtime/roles/placement
  laneInFlight: 4_096,
  reportsInFlight: 256,
  groupRoundMs: 2_000,
  sendAttempts: 3,
  sendRetryMs: 200,
  lostQueueMs: 2_000,
  lostQueueBatch: 64,
  noNodeRetryMs: 250,
  noRoomRetryMs: 100,
  beatTransitMs: 50,
  noRoomRetries: 30,
  placementRetryMs: 250,
  ...QUOTA_HOLDER_LIMITS,
  // node-runtime/roles/jobs, sdk/episode
  presenceEveryMs: 1_000,
  presenceTimeoutMs: 4_000,
  presenceListenMs: 1_100,
  catchUpEveryMs: 15_000,
  handsCallMs: 10_000,
  membersInFlight: 64,
  membersPauseMinMs: 100,
  membersPauseMaxMs: 2_000,
  // node-runtime/roles/iam; how often a tail that heard nothing looks at the stream is its client library's
  quotaSettleMs: 500,
  foldWaitMs: 10_000,
  quotaRecallMs: 50,
  quotaRaceMs: 20,
  tailHeartbeatMs: 1_000,
  // node-runtime/roles/apiserver
  decisionWaitMs: 5_000,
  commandDeadlineMs: 300_000,
  enqueueAttempts: 20,
  enqueueRetryMs: 250,
  // node-runtime/roles/watcher, edge-states
  watcherTickMs: 500,
  edgesRefreshMs: 5_000,
  // the supervisor of a process: systemd's RestartSec, and how long a start may fail
  restartMs: 1_000,
  restartMaxMs: 15_000,
} as const;
