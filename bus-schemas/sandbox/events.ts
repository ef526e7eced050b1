/** Events of the sandbox actor: the only things that change its state. */
import { z } from 'zod';
import { EdgeName, LayerDigest, ProjectName, RequestId, SandboxId, SnapshotId } from '../ids.ts';
import { WireError } from '../errors.ts';
import { TimestampMs } from '../units.ts';
import { NO_FACTS, ScrubRules, SnapshotFacts, SnapshotPurpose } from './snapshot.ts';
import { SandboxSpec } from './spec.ts';
import { PauseReason, StopReason } from './state.ts';

const at = TimestampMs;
const transitional = { at, deadlineAt: TimestampMs };
/** Lives that begin anew whenever it begins to run. */
const running = {
  runningDeadlineAt: TimestampMs.nullable().default(null),
  idleDeadlineAt: TimestampMs.nullable(),
  idlePauseDeadlineAt: TimestampMs.nullable().default(null),
};

export const SandboxAdmitted = z.object({
  type: z.literal('SandboxAdmitted'),
  at,
  id: SandboxId,
  project: ProjectName,
  edge: EdgeName,
  requestId: RequestId,
  index: z.number().int().nonnegative(),
  attempt: z.number().int().nonnegative(),
  spec: SandboxSpec,
  slot: z.number().int().nonnegative(),
  generation: z.number().int().nonnegative(),
  totalDeadlineAt: TimestampMs,
  /** Held for its group until then, and given up afterwards. Null: it goes on at once. */
  heldUntil: TimestampMs.nullable().default(null),
  forkedFrom: SandboxId.nullable(),
});
export const SandboxPreparing = z.object({ type: z.literal('SandboxPreparing'), ...transitional });
export const SandboxStarting = z.object({ type: z.literal('SandboxStarting'), ...transitional });
export const SandboxStarted = z.object({ type: z.literal('SandboxStarted'), at, pid: z.number().int().positive(), ...running });
/** `idleDeadlineAt`: in a pause for want of activity, when it ends unless somebody comes. */
export const SandboxPausing = z.object({
  type: z.literal('SandboxPausing'),
  ...transitional,
  reason: PauseReason.default('requested'),
  idleDeadlineAt: TimestampMs.nullable().default(null),
});
export const SandboxPaused = z.object({
  type: z.literal('SandboxPaused'),
  at,
  memoryGivenBackMiB: z.number().int().nonnegative().nullable().default(null),
});
export const SandboxResuming = z.object({ type: z.literal('SandboxResuming'), ...transitional });
export const SandboxResumed = z.object({ type: z.literal('SandboxResumed'), at, ...running });
export const SandboxSnapshotting = z.object({
  type: z.literal('SandboxSnapshotting'),
  snapshotId: SnapshotId,
  scrub: ScrubRules.default([]),
  purpose: SnapshotPurpose.default('keep'),
  ...transitional,
});
export const SandboxSnapshotted = z.object({
  type: z.literal('SandboxSnapshotted'),
  at,
  snapshotId: SnapshotId,
  layer: LayerDigest,
  facts: SnapshotFacts.default(NO_FACTS),
});
/** A pause, resume or snapshot did not happen; the sandbox is again what it was before. */
export const SandboxTransitionFailed = z.object({ type: z.literal('SandboxTransitionFailed'), at, error: WireError });
export const SandboxLivesExtended = z.object({
  type: z.literal('SandboxLivesExtended'),
  at,
  totalDeadlineAt: TimestampMs,
  runningMs: z.number().int().nonnegative().nullable().default(null),
  idleMs: z.number().int().nonnegative().nullable(),
  idlePauseMs: z.number().int().nonnegative().nullable().default(null),
  ...running,
});
export const SandboxStopping = z.object({ type: z.literal('SandboxStopping'), reason: StopReason, error: WireError.nullable(), ...transitional });
/** A stop in progress was asked to forget the sandbox too. */
export const SandboxForgetting = z.object({ type: z.literal('SandboxForgetting'), at });
/** A stop whose destroy took too long goes on with a new deadline. */
export const SandboxStopRetried = z.object({ type: z.literal('SandboxStopRetried'), ...transitional });
export const SandboxStopped = z.object({ type: z.literal('SandboxStopped'), at });
/** Ended by a failure; nothing of it is left on the node. */
export const SandboxFailed = z.object({ type: z.literal('SandboxFailed'), at, error: WireError });

export const SandboxEvent = z.discriminatedUnion('type', [
  SandboxAdmitted,
  SandboxPreparing,
  SandboxStarting,
  SandboxStarted,
  SandboxPausing,
  SandboxPaused,
  SandboxResuming,
  SandboxResumed,
  SandboxSnapshotting,
  SandboxSnapshotted,
  SandboxTransitionFailed,
  SandboxLivesExtended,
  SandboxStopping,
  SandboxForgetting,
  SandboxStopRetried,
  SandboxStopped,
  SandboxFailed,
]);
export type SandboxEvent = z.infer<typeof SandboxEvent>;
