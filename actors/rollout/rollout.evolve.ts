/** Folds one event into a rollout's state. INV-REPLAY: a function of its arguments alone. */
import type { RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import type { TimestampMs } from '#bus/units.ts';

type Of<T extends RolloutEvent['type']> = Extract<RolloutEvent, { type: T }>;
const NOTHING_SERVED = { stdoutBytes: 0, stdinBytes: 0 } as const;

export const evolveRollout = (state: RolloutState | null, event: RolloutEvent): RolloutState => {
  if (event.type === 'RolloutStarted') return started(event);
  if (!state) throw new Error(`rollout: ${event.type} before RolloutStarted`);
  switch (event.type) {
    case 'RolloutRunning':
      return running(state, event);
    case 'StepsRecorded':
      return { ...state, steps: state.steps + event.steps.length, served: event.served };
    case 'TurnAsked': {
      const { turn, request, requestHash, at, served } = event;
      return { ...state, status: 'asking', served, open: { turn, request, requestHash, askedAt: at, answer: null, answerHash: null } };
    }
    case 'TurnAnswered':
      if (!state.open) throw new Error(`rollout ${state.id}: an answer to turn ${event.turn}, which is not open`);
      return {
        ...state,
        status: 'answering',
        lastAnswerHash: event.answerHash,
        open: { ...state.open, request: null, answer: event.answer, answerHash: event.answerHash },
      };
    case 'TurnDelivered':
      return { ...state, status: 'running', turns: event.turn + 1, served: event.served, open: null };
    case 'SandboxReplaced':
      return { ...state, sandboxes: { ...state.sandboxes, [event.role]: event.sandboxId } };
    case 'RolloutRestarting':
      return restarting(state, event);
    case 'RolloutEnding': {
      const { outcome, reward, result, exitCode, error } = event;
      return { ...state, ...transition(state, event.transitionDeadlineAt), status: 'ending', open: null, outcome, reward, result, exitCode, error };
    }
    case 'RolloutEndRetried':
      return { ...state, ...transition(state, event.transitionDeadlineAt) };
    case 'RolloutEnded':
      return { ...state, ...transition(state, null), status: 'ended', endedAt: event.at };
  }
};

const transition = (state: RolloutState, deadlineAt: TimestampMs | null) => ({ transition: state.transition + 1, transitionDeadlineAt: deadlineAt });

/** An answer that was on its way to the lost worker counts as given: the new one gets it from the record. */
const restarting = (state: RolloutState, event: Of<'RolloutRestarting'>): RolloutState => ({
  ...state,
  ...transition(state, event.transitionDeadlineAt),
  status: 'preparing',
  attempt: event.attempt,
  worker: null,
  execId: null,
  served: NOTHING_SERVED,
  turns: state.open?.answerHash ? state.open.turn + 1 : state.turns,
  open: null,
});

const running = (state: RolloutState, { attempt, worker, execId, sandboxes }: Of<'RolloutRunning'>): RolloutState => ({
  ...state,
  ...transition(state, null),
  status: 'running',
  attempt,
  worker,
  execId,
  sandboxes,
  served: NOTHING_SERVED,
});

const started = (event: Of<'RolloutStarted'>): RolloutState => ({
  id: event.id,
  project: event.project,
  jobId: event.jobId,
  key: event.key,
  bodyHash: event.bodyHash,
  status: 'preparing',
  spec: event.spec,
  createdAt: event.at,
  endedAt: null,
  deadlineAt: event.deadlineAt,
  transitionDeadlineAt: event.transitionDeadlineAt,
  transition: 0,
  attempt: 0,
  worker: null,
  execId: null,
  sandboxes: {},
  served: NOTHING_SERVED,
  turns: 0,
  steps: 0,
  open: null,
  lastAnswerHash: null,
  outcome: null,
  reward: null,
  result: null,
  exitCode: null,
  error: null,
});
