/**
 * Commands of the sandbox actor. Client commands arrive on `dsec.cmd.edge.<edge>.<sandbox>`; reports come from the
 * Edge's own effects and deadlines and never travel on the bus.
 */
import { z } from 'zod';
import { LayerDigest, RequestId, SandboxId, SnapshotId } from '../ids.ts';
import { WIRE_LIMITS } from '../limits.ts';
import { WireError } from '../errors.ts';
import { GroupDecision } from '../request/decision.ts';
import { DurationMs, TimestampMs } from '../units.ts';
import { DeadlineKind, StopReason } from './state.ts';
import { NO_FACTS, ScrubRules, SnapshotFacts, SnapshotPurpose } from './snapshot.ts';
import { SandboxSpec } from './spec.ts';

/**
 * First command of every sandbox: admission has accepted it and reserved `slot` (0…) of the node's id ranges.
 * `layersLocal`: every layer lies on the node, so that nothing has to be fetched before the launch.
 */
export const CreateSandbox = z.object({
  type: z.literal('CreateSandbox'),
  requestId: RequestId,
  index: z.number().int().nonnegative(),
  attempt: z.number().int().nonnegative(),
  spec: SandboxSpec,
  slot: z.number().int().nonnegative(),
  generation: z.number().int().nonnegative(),
  layersLocal: z.boolean().default(true),
  /** Not started before `StartHeld`; when that has not come by this time, given up. Null: started at once. */
  heldUntil: TimestampMs.nullable().default(null),
  forkedFrom: SandboxId.optional(),
});

/** What somebody outside may give as a reason; the others are the actor's own conclusions. */
export const AskedStopReason = StopReason.extract(['requested', 'edge_shutdown', 'lease_lost']);
export const StopSandbox = z.object({ type: z.literal('StopSandbox'), reason: AskedStopReason.default('requested') });
/** Like stop, and the record is forgotten once the retention is over. */
export const DeleteSandbox = z.object({ type: z.literal('DeleteSandbox') });
export const PauseSandbox = z.object({ type: z.literal('PauseSandbox') });
export const ResumeSandbox = z.object({ type: z.literal('ResumeSandbox') });
export const SnapshotSandbox = z.object({
  type: z.literal('SnapshotSandbox'),
  snapshotId: SnapshotId,
  /** What the snapshot must not carry. */
  scrub: ScrubRules.default([]),
  purpose: SnapshotPurpose.default('keep'),
});
/**
 * Sets new lives, counted from the moment of the decision; shorter ones are allowed, but never below the least life.
 * Each is absolute once granted; the version rises by one. Null: no such limit any more.
 */
export const ExtendLives = z.object({
  type: z.literal('ExtendLives'),
  totalMs: DurationMs.optional(),
  runningMs: DurationMs.nullable().optional(),
  idleMs: DurationMs.nullable().optional(),
  idlePauseMs: DurationMs.nullable().optional(),
});

/** Ends the hold of a sandbox of an all-or-nothing group: the group is complete. */
export const StartHeld = z.object({ type: z.literal('StartHeld'), layersLocal: z.boolean().default(true) });

// Reports: facts that an effect or a clock brings, still decided on like every other command.
export const ReportPrepared = z.object({ type: z.literal('ReportPrepared') });
export const ReportStarted = z.object({ type: z.literal('ReportStarted'), pid: z.number().int().positive() });
export const ReportFailed = z.object({ type: z.literal('ReportFailed'), error: WireError });
/** Aether's channel closed and its process is gone. */
export const ReportExited = z.object({ type: z.literal('ReportExited'), error: WireError });
/** Its Edge was declared lost in the generation that admitted it: whatever it was doing, it is over. */
export const ReportLost = z.object({ type: z.literal('ReportLost'), error: WireError });
export const ReportDestroyed = z.object({ type: z.literal('ReportDestroyed') });
/** `memoryGivenBackMiB`: null when giving it back goes on. */
export const ReportPaused = z.object({ type: z.literal('ReportPaused'), memoryGivenBackMiB: z.number().int().nonnegative().nullable().optional() });
export const ReportResumed = z.object({ type: z.literal('ReportResumed') });
export const ReportSnapshotted = z.object({
  type: z.literal('ReportSnapshotted'),
  layer: LayerDigest,
  facts: SnapshotFacts.default(NO_FACTS),
});
/** A pause, resume or snapshot effect could not be done; the sandbox goes back to where it was. */
export const ReportTransitionFailed = z.object({ type: z.literal('ReportTransitionFailed'), error: WireError });
/**
 * A deadline that the state holds has been reached. `version` is the lives' version the timer was set for; `activityAt`
 * is the newest command activity known to the Edge (0 when none since it started).
 */
export const DeadlinePassed = z.object({
  type: z.literal('DeadlinePassed'),
  kind: DeadlineKind,
  version: z.number().int().nonnegative(),
  activityAt: TimestampMs,
});

export const SandboxCommand = z.discriminatedUnion('type', [
  CreateSandbox,
  StopSandbox,
  DeleteSandbox,
  PauseSandbox,
  ResumeSandbox,
  SnapshotSandbox,
  ExtendLives,
  StartHeld,
  ReportPrepared,
  ReportStarted,
  ReportFailed,
  ReportExited,
  ReportLost,
  ReportDestroyed,
  ReportPaused,
  ReportResumed,
  ReportSnapshotted,
  ReportTransitionFailed,
  DeadlinePassed,
]);
export type SandboxCommand = z.infer<typeof SandboxCommand>;

/** What may arrive from the bus on an Edge's command subject for one sandbox. */
export const SandboxBusCommand = z.discriminatedUnion('type', [StopSandbox, DeleteSandbox, PauseSandbox, ResumeSandbox, SnapshotSandbox, ExtendLives]);
export type SandboxBusCommand = z.infer<typeof SandboxBusCommand>;

/** Packed creates for one Edge, on its `_` subject: one spec, up to 256 sandboxes of one request. */
export const LaunchSandboxes = z.object({
  type: z.literal('LaunchSandboxes'),
  requestId: RequestId,
  spec: SandboxSpec,
  forkedFrom: SandboxId.nullable().default(null),
  items: z
    .array(z.object({ sandboxId: SandboxId, index: z.number().int().nonnegative(), attempt: z.number().int().nonnegative() }))
    .min(1)
    .max(WIRE_LIMITS.maxCreatesPerMessage),
  /** As in `CreateSandbox`, for all of them. */
  heldUntil: TimestampMs.nullable().default(null),
  /** The request wants to hear what is held, runs or fails: it is a chunk of a group. */
  follow: z.boolean().default(false),
});
export type LaunchSandboxes = z.infer<typeof LaunchSandboxes>;

/** What a group decided about sandboxes that the Edge holds for it, on its `_` subject. */
export const ReleaseSandboxes = z.object({
  type: z.literal('ReleaseSandboxes'),
  requestId: RequestId,
  decision: GroupDecision,
  items: LaunchSandboxes.shape.items,
});
export type ReleaseSandboxes = z.infer<typeof ReleaseSandboxes>;
