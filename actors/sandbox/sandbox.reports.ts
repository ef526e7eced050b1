/**
 * What effects and clocks report about a sandbox that has not ended. A report is evidence, not an order: one that no longer
 * fits the state is late, and is ignored with the reason.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { SandboxBusCommand, SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore } from '../kernel/definition.ts';
import { SANDBOX_LIMITS } from './limits.ts';
import { pausing, stopping } from './sandbox.client-commands.ts';

type SandboxDecision = Decision<SandboxEvent>;
export type SandboxReport = Exclude<SandboxCommand, SandboxBusCommand | { type: 'CreateSandbox' }>;
type DeadlinePassed = Extract<SandboxReport, { type: 'DeadlinePassed' }>;

export const decideReport = (state: SandboxState, report: SandboxReport, at: TimestampMs): SandboxDecision => {
  const { status } = state;
  switch (report.type) {
    case 'StartHeld':
      return status === 'admitted' ? accept<SandboxEvent>(...firstSteps(report.layersLocal, at)) : ignore(`already ${status}: not held any more`);
    case 'ReportPrepared':
      return status === 'preparing' ? accept({ type: 'SandboxStarting', at, deadlineAt: addMs(at, SANDBOX_LIMITS.startingMs) }) : late(report, status);
    case 'ReportStarted':
      return status === 'starting' ? accept({ type: 'SandboxStarted', at, pid: report.pid, ...livesFrom(state, at) }) : late(report, status);
    case 'ReportFailed':
      return isBeforeRunning(status) ? accept(failing(report.error, at)) : late(report, status);
    case 'ReportExited':
      return hasPayload(status) ? exited(state, report.error, at) : late(report, status);
    case 'ReportLost':
      return status === 'stopping' ? late(report, status) : accept(failing(report.error, at));
    case 'ReportDestroyed':
      return status === 'stopping' ? accept(ended(state, at)) : late(report, status);
    case 'ReportPaused':
      return status === 'pausing' ? accept({ type: 'SandboxPaused', at, memoryGivenBackMiB: report.memoryGivenBackMiB ?? null }) : late(report, status);
    case 'ReportResumed':
      return status === 'resuming' ? accept({ type: 'SandboxResumed', at, ...livesFrom(state, at) }) : late(report, status);
    case 'ReportSnapshotted':
      return state.status === 'snapshotting' && state.snapshotId !== null
        ? accept({ type: 'SandboxSnapshotted', at, snapshotId: state.snapshotId, layer: report.layer, facts: report.facts })
        : late(report, status);
    case 'ReportTransitionFailed':
      return isReversible(status) ? accept({ type: 'SandboxTransitionFailed', at, error: report.error }) : late(report, status);
    case 'DeadlinePassed':
      return deadlinePassed(state, report, at);
  }
};

/** From admission as far as it goes without waiting, in the commit that admits it or that ends its hold. */
export const firstSteps = (layersLocal: boolean, at: TimestampMs): [SandboxEvent, ...SandboxEvent[]] => {
  const preparing: SandboxEvent = { type: 'SandboxPreparing', at, deadlineAt: addMs(at, SANDBOX_LIMITS.preparingMs) };
  return layersLocal ? [preparing, { type: 'SandboxStarting', at, deadlineAt: addMs(at, SANDBOX_LIMITS.startingMs) }] : [preparing];
};

const isBeforeRunning = (status: SandboxStatus) => status === 'admitted' || status === 'preparing' || status === 'starting';
/** A launch may already have put a process on the node, even before it reported one. */
const hasPayload = (status: SandboxStatus) => status !== 'admitted' && status !== 'preparing' && status !== 'stopping';
/** Ways that lead back where they began when they cannot be gone. */
const isReversible = (status: SandboxStatus) => status === 'pausing' || status === 'resuming' || status === 'snapshotting';

const late = (report: SandboxReport, status: SandboxStatus): SandboxDecision => ignore(`${report.type} does not fit a sandbox that is ${status}: it is late`);

/** Failure is a stop that remembers why: what is left on the node is destroyed first, and only then is it `failed`. */
const failing = (error: WireError, at: TimestampMs): SandboxEvent => ({
  type: 'SandboxStopping',
  at,
  reason: 'failed',
  error,
  deadlineAt: addMs(at, SANDBOX_LIMITS.stoppingMs),
});
const ended = ({ failure }: SandboxState, at: TimestampMs): SandboxEvent =>
  failure ? { type: 'SandboxFailed', at, error: failure } : { type: 'SandboxStopped', at };

/** The agent ends its sandbox itself when the total life is over and no Edge does: that is an end like any other, not a failure. */
const exited = (state: SandboxState, error: WireError, at: TimestampMs): SandboxDecision =>
  accept(at < state.totalDeadlineAt ? failing(error, at) : stopping('total_life', at));

/** Running and idle times begin when it begins to run. */
const livesFrom = ({ spec: { lives } }: SandboxState, at: TimestampMs) => ({
  runningDeadlineAt: lives.runningMs === null ? null : addMs(at, lives.runningMs),
  idleDeadlineAt: lives.idleMs === null ? null : addMs(at, lives.idleMs),
  idlePauseDeadlineAt: lives.idlePauseMs === null ? null : addMs(at, lives.idlePauseMs),
});

const deadlinePassed = (state: SandboxState, report: DeadlinePassed, at: TimestampMs): SandboxDecision => {
  switch (report.kind) {
    case 'total':
      return totalPassed(state, at);
    case 'running':
      return runningPassed(state, at);
    case 'idle':
      return idlePassed(state, report, at);
    case 'idlePause':
      return idlePausePassed(state, report, at);
    case 'transition':
      return transitionPassed(state, at);
  }
};

const totalPassed = (state: SandboxState, at: TimestampMs): SandboxDecision => {
  if (state.status === 'stopping') return ignore('already stopping');
  return at < state.totalDeadlineAt ? ignore('the total life is not over: it has been extended') : accept(stopping('total_life', at));
};

const runningPassed = ({ runningDeadlineAt, status }: SandboxState, at: TimestampMs): SandboxDecision => {
  if (runningDeadlineAt === null) return ignore(`no running life is counted while ${status}`);
  return at < runningDeadlineAt ? ignore('the running life is not over: it has been extended') : accept(stopping('running_life', at));
};

/** Idle is real only for the lives it was armed for, and only while nothing newer than the committed floor happened. */
const idlePassed = (state: SandboxState, { version, activityAt }: DeadlinePassed, at: TimestampMs): SandboxDecision => {
  const { idleMs } = state.spec.lives;
  if (!idleRuns(state)) return ignore(`idle time does not run while ${state.status}`);
  if (version !== state.livesVersion) return ignore('the lives have changed since this timer was set');
  if (idleMs === null || state.idleDeadlineAt === null) return ignore('there is no idle limit');
  return dueAt(state.idleDeadlineAt, activityAt, idleMs) > at ? ignore('there was activity') : accept(stopping('idle', at));
};

/** It goes on through the pause that a lack of activity brought, and not through one that somebody asked for. */
const idleRuns = ({ status, pauseReason }: SandboxState): boolean => status === 'running' || (status === 'paused' && pauseReason === 'idle');

const dueAt = (floorAt: TimestampMs, activityAt: TimestampMs, life: DurationMs): TimestampMs => Math.max(floorAt, addMs(activityAt, life)) as TimestampMs;

/** Paused for want of activity. What is known of activity now is written down, because the Edge that knows it may be gone before the end. */
const idlePausePassed = (state: SandboxState, { version, activityAt }: DeadlinePassed, at: TimestampMs): SandboxDecision => {
  const { idleMs, idlePauseMs } = state.spec.lives;
  if (state.status !== 'running') return ignore(`a sandbox that is ${state.status} is not paused for want of activity`);
  if (version !== state.livesVersion) return ignore('the lives have changed since this timer was set');
  if (idlePauseMs === null || state.idlePauseDeadlineAt === null) return ignore('it is not to be paused for want of activity');
  if (dueAt(state.idlePauseDeadlineAt, activityAt, idlePauseMs) > at) return ignore('there was activity');
  const idleDeadlineAt = idleMs === null || state.idleDeadlineAt === null ? null : dueAt(state.idleDeadlineAt, activityAt, idleMs);
  return accept(pausing('idle', at, idleDeadlineAt));
};

const transitionPassed = (state: SandboxState, at: TimestampMs): SandboxDecision => {
  const { status, transitionDeadlineAt, id } = state;
  if (transitionDeadlineAt === null) return ignore(`${status} has no deadline: the transition has ended`);
  if (at < transitionDeadlineAt) return ignore('the deadline belongs to an earlier transition');
  if (status === 'stopping') return accept({ type: 'SandboxStopRetried', at, deadlineAt: addMs(at, SANDBOX_LIMITS.stoppingMs) });
  if (isReversible(status)) {
    const message = `${id} was still ${status} at its deadline and is as before; try again`;
    return accept({ type: 'SandboxTransitionFailed', at, error: wireError('DEADLINE_EXCEEDED', message, { details: { status } }) });
  }
  const message = `${id} was still ${status} at its deadline; create it again`;
  return accept(failing(wireError('LAUNCH_FAILED', message, { details: { status, deadlineAt: transitionDeadlineAt } }), at));
};
