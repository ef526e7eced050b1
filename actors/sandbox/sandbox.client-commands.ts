/** What clients ask of a sandbox that has not ended: goals (stop, delete) and steps (pause, resume, snapshot, lives). */
import { wireError } from '#bus/errors.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { PauseReason, SandboxState, StopReason } from '#bus/sandbox/state.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore, reject } from '../kernel/definition.ts';
import { SANDBOX_LIMITS } from './limits.ts';

type SandboxDecision = Decision<SandboxEvent>;
type Of<T extends SandboxBusCommand['type']> = Extract<SandboxBusCommand, { type: T }>;

export const decideClientCommand = (state: SandboxState, command: SandboxBusCommand, at: TimestampMs): SandboxDecision => {
  switch (command.type) {
    case 'StopSandbox':
      return state.status === 'stopping' ? ignore('already stopping') : accept(stopping(command.reason, at));
    case 'DeleteSandbox':
      return remove(state, at);
    case 'PauseSandbox':
      return pause(state, at);
    case 'ResumeSandbox':
      return resume(state, at);
    case 'SnapshotSandbox':
      return snapshot(state, command, at);
    case 'ExtendLives':
      return extendLives(state, command, at);
  }
};

export const stopping = (reason: StopReason, at: TimestampMs): SandboxEvent => ({
  type: 'SandboxStopping',
  at,
  reason,
  error: null,
  deadlineAt: addMs(at, SANDBOX_LIMITS.stoppingMs),
});

export const pausing = (reason: PauseReason, at: TimestampMs, idleDeadlineAt: TimestampMs | null): SandboxEvent => ({
  type: 'SandboxPausing',
  at,
  reason,
  idleDeadlineAt,
  deadlineAt: addMs(at, SANDBOX_LIMITS.pausingMs),
});

const remove = (state: SandboxState, at: TimestampMs): SandboxDecision => {
  if (state.status !== 'stopping') return accept(stopping('deleted', at));
  return state.forget ? ignore('already being deleted') : accept({ type: 'SandboxForgetting', at });
};

const pause = (state: SandboxState, at: TimestampMs): SandboxDecision => {
  if (state.status === 'paused' || state.status === 'pausing') return ignore(`already ${state.status}`);
  if (state.status !== 'running') return wrongState(state, 'paused', 'running');
  return accept(pausing('requested', at, null));
};

const resume = (state: SandboxState, at: TimestampMs): SandboxDecision => {
  if (state.status === 'running' || state.status === 'resuming') return ignore(`already ${state.status}`);
  if (state.status !== 'paused') return wrongState(state, 'resumed', 'paused');
  return accept({ type: 'SandboxResuming', at, deadlineAt: addMs(at, SANDBOX_LIMITS.resumingMs) });
};

const snapshot = (state: SandboxState, { snapshotId, scrub, purpose }: Of<'SnapshotSandbox'>, at: TimestampMs): SandboxDecision => {
  if (state.snapshots.some(({ id }) => id === snapshotId)) return ignore('this snapshot has been made');
  if (state.status === 'snapshotting' && state.snapshotId === snapshotId) return ignore('this snapshot is being made');
  if (state.status !== 'running' && state.status !== 'paused') return wrongState(state, 'snapshotted', 'running or paused');
  if (purpose === 'keep' && state.snapshots.filter((made) => made.purpose === 'keep').length >= SANDBOX_LIMITS.snapshots) {
    const message = `${state.id} already has ${SANDBOX_LIMITS.snapshots} snapshots; create a sandbox from the newest and go on there`;
    return reject(wireError('LIMIT_OUT_OF_RANGE', message, { details: { limit: SANDBOX_LIMITS.snapshots } }));
  }
  return accept({ type: 'SandboxSnapshotting', at, snapshotId, scrub, purpose, deadlineAt: addMs(at, SANDBOX_LIMITS.snapshottingMs) });
};

const extendLives = (state: SandboxState, command: Of<'ExtendLives'>, at: TimestampMs): SandboxDecision => {
  const { totalMs, runningMs, idleMs, idlePauseMs } = command;
  if ([totalMs, runningMs, idleMs, idlePauseMs].every((life) => life === undefined))
    return reject(wireError('INVALID_ARGUMENT', 'ExtendLives names none of totalMs, runningMs, idleMs and idlePauseMs; give at least one'));
  if (state.status === 'stopping') return wrongState(state, 'given new lives', 'not stopping');
  const refused = Object.entries({ totalMs, runningMs, idleMs, idlePauseMs })
    .map(([field, life]) => refusedLife(field, life ?? undefined))
    .find((refusal) => refusal !== undefined);
  if (refused) return refused;
  const { lives } = state.spec;
  const fromNow = (life: DurationMs | null, isCounted = ticks(state)): TimestampMs | null => (life !== null && isCounted ? addMs(at, life) : null);
  const granted = {
    totalDeadlineAt: totalMs === undefined ? state.totalDeadlineAt : addMs(at, totalMs),
    runningMs: runningMs === undefined ? lives.runningMs : runningMs,
    runningDeadlineAt: runningMs === undefined ? state.runningDeadlineAt : fromNow(runningMs),
    idleMs: idleMs === undefined ? lives.idleMs : idleMs,
    idleDeadlineAt: idleMs === undefined ? state.idleDeadlineAt : fromNow(idleMs, ticks(state) || state.pauseReason === 'idle'),
    idlePauseMs: idlePauseMs === undefined ? lives.idlePauseMs : idlePauseMs,
    idlePauseDeadlineAt: idlePauseMs === undefined ? state.idlePauseDeadlineAt : fromNow(idlePauseMs),
  };
  const held = { ...state, runningMs: lives.runningMs, idleMs: lives.idleMs, idlePauseMs: lives.idlePauseMs };
  const isHeld = Object.entries(granted).every(([name, value]) => held[name as keyof typeof granted] === value);
  return isHeld ? ignore('these lives are already granted') : accept({ type: 'SandboxLivesExtended', at, ...granted });
};

/** States in which running and idle deadlines are held: from the start of the payload until it rests or ends. */
const ticks = ({ status, returnTo }: SandboxState): boolean =>
  status === 'running' || status === 'pausing' || (status === 'snapshotting' && returnTo === 'running');

const refusedLife = (field: string, value: DurationMs | undefined): SandboxDecision | undefined => {
  if (value === undefined) return undefined;
  const details = { field, value, minMs: SPEC_LIMITS.lifeMsMin, maxMs: SPEC_LIMITS.lifeMsMax };
  if (value < SPEC_LIMITS.lifeMsMin)
    return reject(
      wireError('INVALID_ARGUMENT', `${field}: ${value} ms would be over at once; the least is ${SPEC_LIMITS.lifeMsMin} ms, use stop to end a sandbox`, {
        details,
      }),
    );
  if (value > SPEC_LIMITS.lifeMsMax)
    return reject(wireError('LIMIT_OUT_OF_RANGE', `${field}: ${value} ms is above ${SPEC_LIMITS.lifeMsMax} ms; extend again later instead`, { details }));
  return undefined;
};

const wrongState = ({ id, status }: SandboxState, done: string, needed: string): SandboxDecision =>
  reject(wireError('INVALID_STATE', `${id} is ${status} and cannot be ${done} now; it must be ${needed}`, { details: { status } }));
