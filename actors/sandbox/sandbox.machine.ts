/**
 * The state chart of a sandbox: which event leads from which state to which, and what it writes down.
 *
 * Fed with EVENTS, never with commands: by the time the machine sees something, it has been decided. Every action is a
 * pure assign; there is no timer, no invoked work and no child actor, because those would be lost on rehydration.
 * `stopped` and `failed` are not XState finals: a final machine is deaf, and an ended sandbox may still be told to be
 * forgotten.
 * @paper §2.3 §6.3
 */
import { assertEvent, assign, setup } from 'xstate';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { DurationMs, TimestampMs } from '#bus/units.ts';
import { SANDBOX_LIMITS } from './limits.ts';

/** Everything but the status, which is the machine's own state value. */
export type SandboxContext = Omit<SandboxState, 'status'>;
type Admitted = Extract<SandboxEvent, { type: 'SandboxAdmitted' }>;

/** One of each for every sandbox that has none: a node has thousands. */
const NO_SCRUB: SandboxContext['snapshotScrub'] = [];
const NO_SNAPSHOTS: SandboxContext['snapshots'] = [];

export const contextOf = (e: Admitted): SandboxContext => ({
  id: e.id,
  project: e.project,
  edge: e.edge,
  requestId: e.requestId,
  index: e.index,
  attempt: e.attempt,
  spec: e.spec,
  slot: e.slot,
  generation: e.generation,
  pid: null,
  createdAt: e.at,
  startedAt: null,
  endedAt: null,
  totalDeadlineAt: e.totalDeadlineAt,
  runningDeadlineAt: null,
  idleDeadlineAt: null,
  idlePauseDeadlineAt: null,
  livesVersion: 0,
  transitionDeadlineAt: e.heldUntil,
  pauseReason: null,
  memoryGivenBackMiB: null,
  returnTo: null,
  snapshotId: null,
  snapshotScrub: NO_SCRUB,
  snapshotPurpose: 'keep',
  snapshots: NO_SNAPSHOTS,
  stopReason: null,
  forget: false,
  failure: null,
  forkedFrom: e.forkedFrom,
});

/** Idle time does not run during a step; whoever asked for the step was active, so idle times begin anew after it. */
const idleRenewed = ({ idleDeadlineAt, idlePauseDeadlineAt, spec: { lives } }: SandboxContext, at: TimestampMs) => ({
  idleDeadlineAt: later(idleDeadlineAt, at, lives.idleMs),
  idlePauseDeadlineAt: later(idlePauseDeadlineAt, at, lives.idlePauseMs),
});
const later = (deadlineAt: TimestampMs | null, at: TimestampMs, life: DurationMs | null): TimestampMs | null =>
  deadlineAt === null || life === null ? deadlineAt : (Math.max(deadlineAt, at + life) as TimestampMs);

const NOT_PAUSED = { pauseReason: null, memoryGivenBackMiB: null } as const;

/** Legal from every state that has not begun to end. */
const whileAlive = {
  SandboxStopping: { target: 'stopping', actions: 'beginStop' },
  SandboxLivesExtended: { actions: 'setLives' },
} as const;
const onceEnded = { SandboxForgetting: { actions: 'markForgotten' } } as const;
const wasRunning = ({ context }: { context: SandboxContext }) => context.returnTo === 'running';

const NO_SNAPSHOT_ORDER: Pick<SandboxContext, 'snapshotScrub' | 'snapshotPurpose'> = { snapshotScrub: NO_SCRUB, snapshotPurpose: 'keep' };

/** Captures for forks are needed while their forks are made; a tree search makes many. */
const withoutOldForks = (made: SandboxContext['snapshots']): SandboxContext['snapshots'] => {
  const forks = made.filter(({ purpose }) => purpose === 'fork');
  const dropped = new Set(forks.slice(0, Math.max(0, forks.length - SANDBOX_LIMITS.forkCaptures)));
  return made.filter((one) => !dropped.has(one));
};

export const sandboxMachine = setup({
  types: { context: {} as SandboxContext, events: {} as SandboxEvent, input: {} as Admitted },
  guards: { wasRunning },
  actions: {
    beginTransition: assign(({ event }) => {
      assertEvent(event, ['SandboxPreparing', 'SandboxStarting', 'SandboxResuming']);
      return { transitionDeadlineAt: event.deadlineAt };
    }),
    beginPause: assign(({ context, event }) => {
      assertEvent(event, 'SandboxPausing');
      const idleDeadlineAt = event.reason === 'idle' ? event.idleDeadlineAt : context.idleDeadlineAt;
      return { transitionDeadlineAt: event.deadlineAt, pauseReason: event.reason, idleDeadlineAt };
    }),
    begin: assign(({ event }) => {
      assertEvent(event, 'SandboxStarted');
      const { pid, runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt } = event;
      return { pid, startedAt: event.at, runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt, transitionDeadlineAt: null };
    }),
    rest: assign(({ context, event }) => {
      assertEvent(event, 'SandboxPaused');
      return {
        runningDeadlineAt: null,
        idleDeadlineAt: context.pauseReason === 'idle' ? context.idleDeadlineAt : null,
        idlePauseDeadlineAt: null,
        memoryGivenBackMiB: event.memoryGivenBackMiB,
        transitionDeadlineAt: null,
      };
    }),
    goOn: assign(({ event }) => {
      assertEvent(event, 'SandboxResumed');
      const { runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt } = event;
      return { runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt, ...NOT_PAUSED, transitionDeadlineAt: null };
    }),
    beginSnapshot: assign(({ event }, params: { from: 'running' | 'paused' }) => {
      assertEvent(event, 'SandboxSnapshotting');
      const { snapshotId, scrub, purpose } = event;
      return { returnTo: params.from, snapshotId, snapshotScrub: scrub, snapshotPurpose: purpose, transitionDeadlineAt: event.deadlineAt };
    }),
    keepSnapshot: assign(({ context, event }) => {
      assertEvent(event, 'SandboxSnapshotted');
      const snapshots = withoutOldForks([...context.snapshots, { id: event.snapshotId, layer: event.layer, at: event.at, purpose: context.snapshotPurpose }]);
      return { snapshots, ...NO_SNAPSHOT_ORDER, returnTo: null, transitionDeadlineAt: null, ...idleRenewed(context, event.at) };
    }),
    dropSnapshot: assign({ snapshotId: null, ...NO_SNAPSHOT_ORDER, returnTo: null }),
    goBack: assign(({ context, event }) => {
      assertEvent(event, 'SandboxTransitionFailed');
      return { transitionDeadlineAt: null, ...idleRenewed(context, event.at) };
    }),
    forgetPause: assign(NOT_PAUSED),
    setLives: assign(({ context, event }) => {
      assertEvent(event, 'SandboxLivesExtended');
      const { totalDeadlineAt, runningMs, runningDeadlineAt, idleMs, idleDeadlineAt, idlePauseMs, idlePauseDeadlineAt } = event;
      const lives = { ...context.spec.lives, runningMs, idleMs, idlePauseMs } as typeof context.spec.lives;
      const deadlines = { totalDeadlineAt, runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt };
      return { ...deadlines, livesVersion: context.livesVersion + 1, spec: { ...context.spec, lives } };
    }),
    beginStop: assign(({ context, event }) => {
      assertEvent(event, 'SandboxStopping');
      return {
        stopReason: event.reason,
        failure: event.error,
        forget: context.forget || event.reason === 'deleted',
        transitionDeadlineAt: event.deadlineAt,
        runningDeadlineAt: null,
        idleDeadlineAt: null,
        idlePauseDeadlineAt: null,
        ...NOT_PAUSED,
        returnTo: null,
      };
    }),
    retryStop: assign(({ event }) => {
      assertEvent(event, 'SandboxStopRetried');
      return { transitionDeadlineAt: event.deadlineAt };
    }),
    end: assign(({ context, event }) => {
      assertEvent(event, ['SandboxStopped', 'SandboxFailed']);
      const failure = event.type === 'SandboxFailed' ? event.error : context.failure;
      return { pid: null, endedAt: event.at, transitionDeadlineAt: null, failure };
    }),
    markForgotten: assign({ forget: true }),
  },
}).createMachine({
  id: 'sandbox',
  context: ({ input }) => contextOf(input),
  initial: 'admitted',
  states: {
    admitted: {
      on: {
        ...whileAlive,
        SandboxPreparing: { target: 'preparing', actions: 'beginTransition' },
        SandboxStarting: { target: 'starting', actions: 'beginTransition' },
      },
    },
    preparing: { on: { ...whileAlive, SandboxStarting: { target: 'starting', actions: 'beginTransition' } } },
    starting: { on: { ...whileAlive, SandboxStarted: { target: 'running', actions: 'begin' } } },
    running: {
      on: {
        ...whileAlive,
        SandboxPausing: { target: 'pausing', actions: 'beginPause' },
        SandboxSnapshotting: { target: 'snapshotting', actions: { type: 'beginSnapshot', params: { from: 'running' } } },
      },
    },
    pausing: {
      on: {
        ...whileAlive,
        SandboxPaused: { target: 'paused', actions: 'rest' },
        SandboxTransitionFailed: { target: 'running', actions: ['goBack', 'forgetPause'] },
      },
    },
    paused: {
      on: {
        ...whileAlive,
        SandboxResuming: { target: 'resuming', actions: 'beginTransition' },
        SandboxSnapshotting: { target: 'snapshotting', actions: { type: 'beginSnapshot', params: { from: 'paused' } } },
      },
    },
    resuming: {
      on: { ...whileAlive, SandboxResumed: { target: 'running', actions: 'goOn' }, SandboxTransitionFailed: { target: 'paused', actions: 'goBack' } },
    },
    snapshotting: {
      on: {
        ...whileAlive,
        SandboxSnapshotted: [
          { guard: 'wasRunning', target: 'running', actions: 'keepSnapshot' },
          { target: 'paused', actions: 'keepSnapshot' },
        ],
        SandboxTransitionFailed: [
          { guard: 'wasRunning', target: 'running', actions: ['goBack', 'dropSnapshot'] },
          { target: 'paused', actions: ['goBack', 'dropSnapshot'] },
        ],
      },
    },
    stopping: {
      on: {
        ...onceEnded,
        SandboxStopRetried: { actions: 'retryStop' },
        SandboxStopped: { target: 'stopped', actions: 'end' },
        SandboxFailed: { target: 'failed', actions: 'end' },
      },
    },
    stopped: { on: onceEnded },
    failed: { on: onceEnded },
  },
});
