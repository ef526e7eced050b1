/**
 * What a sandbox's state calls for on its node, from the state alone: the same before and after a crash.
 *
 * Every effect is a goal (`ensure…`) that may be run again; its key stays equal while the same work is due, so a commit that
 * does not concern it (new lives during a launch) leaves it alone.
 */
import type { LayerDigest, ProjectName, SandboxId, SnapshotId } from '#bus/ids.ts';
import type { ScrubRules, SnapshotPurpose } from '#bus/sandbox/snapshot.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Deadline } from '../kernel/definition.ts';

type Of<T extends string, Data = unknown> = { readonly key: string; readonly type: T; readonly id: SandboxId; readonly project: ProjectName } & Data;

export type SandboxEffect =
  /** Bring every layer to the node. Reports `ReportPrepared` or `ReportFailed`. */
  | Of<'ensurePrepared', { readonly layers: readonly LayerDigest[] }>
  /** Mount what is needed and launch, once. Reports `ReportStarted` or `ReportFailed`. */
  | Of<'ensureLaunched', { readonly spec: SandboxSpec; readonly slot: number; readonly generation: number; readonly totalDeadlineAt: TimestampMs }>
  /**
   * Hold the channel to the payload; `frozen` says how the node must have it, null while that is changing. Reports
   * `ReportExited` when the payload is gone, otherwise nothing.
   */
  | Of<'ensureAttached', { readonly pid: number; readonly frozen: boolean | null }>
  /** Report the participle, or `ReportTransitionFailed` when it cannot be done. */
  | Of<'ensurePaused'>
  | Of<'ensureResumed'>
  | Of<'ensureSnapshot', { readonly snapshotId: SnapshotId; readonly scrub: ScrubRules; readonly purpose: SnapshotPurpose }>
  /** Leave nothing of it on the node, whether or not it was ever launched. Reports `ReportDestroyed`. */
  | Of<'ensureDestroyed', { readonly slot: number }>;

export const pendingSandboxEffects = (state: SandboxState): readonly SandboxEffect[] => {
  const { id, project, spec, slot, generation, totalDeadlineAt, snapshotId, snapshotScrub: scrub, snapshotPurpose: purpose } = state;
  const it = { id, project };
  // A round of pause, resume or destroy is told from the one before by its deadline.
  const round = (verb: string) => `${verb}:${state.transitionDeadlineAt}`;
  switch (state.status) {
    case 'preparing':
      return [{ ...it, key: 'prepare', type: 'ensurePrepared', layers: spec.layers }];
    case 'starting':
      return [{ ...it, key: 'launch', type: 'ensureLaunched', spec, slot, generation, totalDeadlineAt }];
    case 'running':
      return attached(state, false);
    case 'paused':
      return attached(state, true);
    case 'pausing':
      return [...attached(state, null), { ...it, key: round('pause'), type: 'ensurePaused' }];
    case 'resuming':
      return [...attached(state, null), { ...it, key: round('resume'), type: 'ensureResumed' }];
    case 'snapshotting':
      return [
        ...attached(state, state.returnTo === 'paused' ? true : null),
        ...(snapshotId === null ? [] : [{ ...it, key: round(`snapshot:${snapshotId}`), type: 'ensureSnapshot' as const, snapshotId, scrub, purpose }]),
      ];
    case 'stopping':
      return [{ ...it, key: round('destroy'), type: 'ensureDestroyed', slot }];
    case 'admitted':
    case 'stopped':
    case 'failed':
      return [];
  }
};

/** The key carries `frozen`: a pause that was given up half-way must be undone although the channel is held all along. */
const attached = ({ id, project, pid }: SandboxState, frozen: boolean | null): readonly SandboxEffect[] =>
  pid === null
    ? []
    : [{ key: frozen === null ? 'attach:changing' : frozen ? 'attach:true' : 'attach:false', type: 'ensureAttached', id, project, pid, frozen }];

export const sandboxDeadlines = (state: SandboxState): readonly Deadline[] => {
  const { status, totalDeadlineAt, runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt, transitionDeadlineAt, livesVersion: version } = state;
  if (ENDED_STATUSES.has(status)) return [];
  const deadlines: Deadline[] = [];
  if (status !== 'stopping') deadlines.push({ kind: 'total', at: totalDeadlineAt, version });
  if (runningDeadlineAt !== null) deadlines.push({ kind: 'running', at: runningDeadlineAt, version });
  if ((status === 'running' || status === 'paused') && idleDeadlineAt !== null) deadlines.push({ kind: 'idle', at: idleDeadlineAt, version });
  if (status === 'running' && idlePauseDeadlineAt !== null) deadlines.push({ kind: 'idlePause', at: idlePauseDeadlineAt, version });
  // Told from an older one by its time alone: a timer that fires early is ignored.
  if (transitionDeadlineAt !== null) deadlines.push({ kind: 'transition', at: transitionDeadlineAt, version: 0 });
  return deadlines;
};
