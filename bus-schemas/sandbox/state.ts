/** The sandbox actor's state as it is carried in every commit. */
import { z } from 'zod';
import { EdgeName, ProjectName, RequestId, SandboxId, SnapshotId } from '../ids.ts';
import { WireError } from '../errors.ts';
import { TimestampMs } from '../units.ts';
import { ScrubRules, SnapshotMade, SnapshotPurpose } from './snapshot.ts';
import { SandboxSpec } from './spec.ts';

export const SANDBOX_STATUSES = [
  'admitted',
  'preparing',
  'starting',
  'running',
  'pausing',
  'paused',
  'resuming',
  'snapshotting',
  'stopping',
  'stopped',
  'failed',
] as const;
export const SandboxStatus = z.enum(SANDBOX_STATUSES);
export type SandboxStatus = z.infer<typeof SandboxStatus>;

/** States after which nothing of the sandbox is left on the node. */
export const ENDED_STATUSES: ReadonlySet<SandboxStatus> = new Set(['stopped', 'failed']);

export const StopReason = z.enum(['requested', 'deleted', 'total_life', 'running_life', 'idle', 'edge_shutdown', 'failed', 'lease_lost']);
export type StopReason = z.infer<typeof StopReason>;
/** Reasons that say: one of its lives was over. */
export const EXPIRY_REASONS: ReadonlySet<StopReason> = new Set(['total_life', 'running_life', 'idle']);

/** Why it is paused: somebody asked, or nobody used it. */
export const PauseReason = z.enum(['requested', 'idle']);
export type PauseReason = z.infer<typeof PauseReason>;

/** `total`, `running` and `idle` are the lives; `idlePause` is when a sandbox that nobody uses is paused; `transition` bounds every state that is on its way to another. */
export const DeadlineKind = z.enum(['total', 'running', 'idle', 'idlePause', 'transition']);
export type DeadlineKind = z.infer<typeof DeadlineKind>;

export const SandboxState = z.object({
  id: SandboxId,
  project: ProjectName,
  edge: EdgeName,
  status: SandboxStatus,
  requestId: RequestId,
  index: z.number().int().nonnegative(),
  attempt: z.number().int().nonnegative(),
  spec: SandboxSpec,
  slot: z.number().int().nonnegative(),
  /** Edge generation that launched it. */
  generation: z.number().int().nonnegative(),
  pid: z.number().int().positive().nullable(),
  createdAt: TimestampMs,
  startedAt: TimestampMs.nullable(),
  endedAt: TimestampMs.nullable(),
  /** Absolute; `ExtendLives` sets a new one. `spec.lives.totalMs` stays what was granted at creation. */
  totalDeadlineAt: TimestampMs,
  /** Absolute while it runs; null while it does not, or without such a limit. */
  runningDeadlineAt: TimestampMs.nullable().default(null),
  /**
   * The committed floor of the idle deadline; the effective one is max(this, newest activity + idle life). It goes on through a pause
   * for want of activity, and not through one that was asked for.
   */
  idleDeadlineAt: TimestampMs.nullable(),
  /** The committed floor of the moment at which it is paused for want of activity; null while it does not run, or without such a limit. */
  idlePauseDeadlineAt: TimestampMs.nullable().default(null),
  livesVersion: z.number().int().nonnegative(),
  /** When a state on its way to another must have got there. */
  transitionDeadlineAt: TimestampMs.nullable(),
  /** Of a pause, from its beginning to the end of the resume. */
  pauseReason: PauseReason.nullable().default(null),
  /** What the pause gave back to the node, less what compressed copies take. Null: not paused, or not known. */
  memoryGivenBackMiB: z.number().int().nonnegative().nullable().default(null),
  /** Where a snapshot in progress returns to. */
  returnTo: z.enum(['running', 'paused']).nullable(),
  /** The snapshot in progress, or the newest that succeeded: asking for it again changes nothing. */
  snapshotId: SnapshotId.nullable(),
  /** What the snapshot in progress must not carry. */
  snapshotScrub: ScrubRules.default([]),
  snapshotPurpose: SnapshotPurpose.default('keep'),
  /** Snapshots made from this sandbox, newest last. */
  snapshots: z.array(SnapshotMade),
  stopReason: StopReason.nullable(),
  forget: z.boolean(),
  failure: WireError.nullable(),
  forkedFrom: SandboxId.nullable(),
});
export type SandboxState = z.infer<typeof SandboxState>;
