/** One sandbox and every command it can get, with the values that make a difference. */
import { wireError } from '#bus/errors.ts';
import { type EdgeName, LayerDigest, type ProjectName, RequestId, SnapshotId, sandboxIdFor } from '#bus/ids.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import { NO_FACTS, type SnapshotPurpose } from '#bus/sandbox/snapshot.ts';
import { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { type DurationMs, TimestampMs } from '#bus/units.ts';

export const at = (value: number): TimestampMs => TimestampMs.parse(value);
export const ms = (value: number): DurationMs => value as DurationMs;

export const T0 = 1_700_000_000_000;
export const IDLE_MS = 60_000;
export const IDLE_PAUSE_MS = 20_000;
export const RUNNING_MS = 1_200_000;
export const TOTAL_MS = 3_600_000;

export const spec: SandboxSpec = SandboxSpec.parse({
  backend: 'container',
  image: 'debian',
  layers: [`sha256:${'0'.repeat(64)}`, `sha256:${'1'.repeat(64)}`],
  limits: { memoryMiB: 512, cpuMillis: 1_000, pids: 256 },
  lives: { totalMs: TOTAL_MS, runningMs: RUNNING_MS, idleMs: IDLE_MS, idlePauseMs: IDLE_PAUSE_MS },
  networkRules: {},
  initUser: 'root',
  env: { LANG: 'C.UTF-8' },
  labels: { job: 'demo' },
  hostname: 'box',
});

export const requestId = RequestId.parse(`rq-3-${'ab'.repeat(16)}`);
export const edge = 'edge-1' as EdgeName;
export const project = 'acme' as ProjectName;
export const sandboxId = sandboxIdFor(requestId, 0, 0, edge);
export const address = sandboxAddress(project, sandboxId);

type Of<T extends SandboxCommand['type']> = Extract<SandboxCommand, { type: T }>;
/** How long a node keeps a sandbox for its group. */
export const HELD_MS = 400_000;
export const create: Of<'CreateSandbox'> = {
  type: 'CreateSandbox',
  requestId,
  index: 0,
  attempt: 0,
  spec,
  slot: 7,
  generation: 3,
  layersLocal: true,
  heldUntil: null,
};
export const started: SandboxCommand = { type: 'ReportStarted', pid: 4_242 };
export const stop: SandboxCommand = { type: 'StopSandbox', reason: 'requested' };
export const remove: SandboxCommand = { type: 'DeleteSandbox' };
export const destroyed: SandboxCommand = { type: 'ReportDestroyed' };
export const failed: SandboxCommand = { type: 'ReportFailed', error: wireError('START_FAILED', 'no /bin/sh in the image') };
export const exited: SandboxCommand = { type: 'ReportExited', error: wireError('SANDBOX_FAILED', 'its first process ended', { fault: 'agent' }) };
export const deadline = (kind: Of<'DeadlinePassed'>['kind'], version = 0, activityAt = 0): SandboxCommand => ({
  type: 'DeadlinePassed',
  kind,
  version,
  activityAt: at(activityAt),
});

/** A snapshot that removes something, so that states carry rules. */
export const snapshotOf = (id: string, purpose: SnapshotPurpose = 'keep'): SandboxCommand => ({
  type: 'SnapshotSandbox',
  snapshotId: SnapshotId.parse(id),
  scrub: ['/tmp/**'],
  purpose,
});
export const snapshotted = (digit: string): SandboxCommand => ({
  type: 'ReportSnapshotted',
  layer: LayerDigest.parse(`sha256:${digit.repeat(64)}`),
  facts: { ...NO_FACTS, files: 7, storedBytes: 4_096 },
});

/** Every command type, in every variant that the decider tells apart. */
export const COMMANDS: readonly SandboxCommand[] = [
  create,
  { ...create, layersLocal: false },
  { ...create, spec: { ...spec, lives: { ...spec.lives, runningMs: null, idleMs: null, idlePauseMs: null } } },
  { ...create, attempt: 1 },
  { ...create, heldUntil: at(T0 + HELD_MS) },
  { type: 'StartHeld', layersLocal: true },
  { type: 'StartHeld', layersLocal: false },
  stop,
  { type: 'StopSandbox', reason: 'edge_shutdown' },
  { type: 'StopSandbox', reason: 'lease_lost' },
  remove,
  { type: 'PauseSandbox' },
  { type: 'ResumeSandbox' },
  snapshotOf('first'),
  snapshotOf('for-a-fork', 'fork'),
  snapshotOf('second'),
  { type: 'ExtendLives' },
  { type: 'ExtendLives', totalMs: ms(2 * TOTAL_MS) },
  { type: 'ExtendLives', runningMs: ms(2 * RUNNING_MS) },
  { type: 'ExtendLives', runningMs: null },
  { type: 'ExtendLives', idleMs: null },
  { type: 'ExtendLives', idlePauseMs: null },
  { type: 'ExtendLives', idlePauseMs: ms(2 * IDLE_PAUSE_MS) },
  { type: 'ExtendLives', idleMs: ms(2 * IDLE_MS) },
  { type: 'ExtendLives', totalMs: ms(0) },
  { type: 'ExtendLives', idleMs: ms(SPEC_LIMITS.lifeMsMax + 1) },
  { type: 'ReportPrepared' },
  { type: 'ReportLost', error: wireError('SANDBOX_LOST', 'its node was lost') },
  started,
  failed,
  exited,
  destroyed,
  { type: 'ReportPaused' },
  { type: 'ReportPaused', memoryGivenBackMiB: 120 },
  { type: 'ReportResumed' },
  snapshotted('2'),
  { type: 'ReportTransitionFailed', error: wireError('NOT_SUPPORTED', 'this backend cannot pause yet') },
  deadline('total'),
  deadline('running'),
  deadline('idle'),
  deadline('idle', 1),
  deadline('idlePause'),
  deadline('idlePause', 1),
  deadline('idlePause', 0, T0 + 100 * TOTAL_MS),
  deadline('idle', 0, T0 + 100 * TOTAL_MS),
  deadline('transition'),
];

/** Moments: at once, after every transition's limit, after the idle life, after the total life. */
export const DELAYS_MS: readonly number[] = [0, 1, 700_000, 10 * TOTAL_MS];

/** What tells states apart when every one that can be reached is looked for. */
export const shapeOf = (s: SandboxState): string =>
  JSON.stringify([
    s.status,
    s.stopReason,
    s.forget,
    s.failure?.code,
    s.returnTo,
    s.snapshotId,
    s.spec.lives.idleMs,
    s.idleDeadlineAt === null,
    s.runningDeadlineAt === null,
    Math.min(s.livesVersion, 2),
    Math.min(s.snapshots.length, 2),
  ]);
