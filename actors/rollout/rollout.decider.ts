/**
 * Decides how an episode goes on: turns asked and answered in order, workers that are lost and made anew, the end.
 *
 * INV-TURN: turns are numbered 0, 1, 2, …, each is answered once, and an answer is durable before the worker sees it.
 * INV-REPLAY-TURN: a new worker is given the recorded answers, so none is asked of the trainer twice. Does not decide what a turn
 * or an answer means, nor who owns the job: the newest epoch comes in as data.
 * @paper §6.2
 */
import { type WireError, wireError } from '#bus/errors.ts';
import { RolloutId } from '#bus/ids.ts';
import type { Outcome, RolloutCommand, RolloutEvent, RolloutState, StepRecord } from '#bus/rollout/schema.ts';
import { addMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { ROLLOUT_ACTOR_LIMITS } from './limits.ts';

type RolloutDecision = Decision<RolloutEvent>;
type Of<T extends RolloutCommand['type']> = Extract<RolloutCommand, { type: T }>;
type Ending = Extract<RolloutEvent, { type: 'RolloutEnding' }>;

export const decideRollout = (state: RolloutState | null, command: RolloutCommand, context: DecisionContext): RolloutDecision => {
  const { address, at } = context;
  if (command.type === 'StartRollout') return state ? startAgain(state, command) : start(command, context);
  if (!state) return reject(wireError('ROLLOUT_NOT_FOUND', `there is no rollout ${address.id} in project ${address.project}`));
  if (command.type === 'AnswerTurn') return answer(state, command, at);
  if (state.status === 'ended') return ignore('the rollout has ended');
  if (state.status === 'ending') return whileEnding(state, command, at);
  switch (command.type) {
    case 'StopRollout':
      return accept(ending('stopped', at, {}));
    case 'RolloutDeadlinePassed':
      return deadlinePassed(state, command, at);
    case 'ReportReplaced':
      return replaced(state, command, at);
    case 'ReportCleaned':
      return ignore('the rollout goes on');
    default:
      return command.attempt === state.attempt ? reported(state, command, at) : ignore(`worker ${command.attempt} is not the living one, ${state.attempt} is`);
  }
};

const start = ({ jobId, key, bodyHash, spec, jobDeadlineAt }: Of<'StartRollout'>, { address, at }: DecisionContext): RolloutDecision => {
  const id = RolloutId.safeParse(address.id);
  if (!id.success) return reject(wireError('INVALID_ARGUMENT', `${address.id} is not a rollout id`));
  if (at >= jobDeadlineAt) return reject(wireError('JOB_ENDED', `job ${jobId} is at its deadline; extend it or create a new one`));
  const deadlineAt = Math.min(jobDeadlineAt, at + spec.lifeMs) as TimestampMs;
  const transitionDeadlineAt = addMs(at, ROLLOUT_ACTOR_LIMITS.preparingMs);
  return accept({ type: 'RolloutStarted', at, id: id.data, project: address.project, jobId, key, bodyHash, spec, deadlineAt, transitionDeadlineAt });
};

const startAgain = (state: RolloutState, { key, bodyHash }: Of<'StartRollout'>): RolloutDecision =>
  key === state.key && bodyHash === state.bodyHash
    ? ignore('the same rollout has been started already')
    : reject(
        wireError('KEY_CONFLICT', `key ${key} already names a rollout with another body; use a new key for a new rollout`, {
          details: { rolloutId: state.id },
        }),
      );

const answer = (state: RolloutState, { turn, answer: given, answerHash, epoch, jobEpoch }: Of<'AnswerTurn'>, at: TimestampMs): RolloutDecision => {
  if (epoch < jobEpoch)
    return reject(
      wireError('LEASE_LOST', `an answer under epoch ${epoch} came after epoch ${jobEpoch} had begun; claim the job again`, { details: { epoch, jobEpoch } }),
    );
  const isNewest = turn === (state.open?.answerHash ? state.open.turn : state.turns - 1);
  if (isNewest && state.lastAnswerHash !== null) {
    if (answerHash === state.lastAnswerHash) return ignore('this turn has this answer already');
    return reject(wireError('TURN_ANSWERED', `turn ${turn} of ${state.id} has another answer already; it stays`, { details: { turn } }));
  }
  if (state.status === 'ending' || state.status === 'ended')
    return reject(wireError('ROLLOUT_ENDED', `rollout ${state.id} is ${state.status} (${state.outcome})`));
  if (state.status !== 'asking' || state.open?.turn !== turn)
    return reject(
      wireError(
        'TURN_OUT_OF_ORDER',
        `rollout ${state.id} does not wait for an answer to turn ${turn}; ${state.open ? `turn ${state.open.turn} is open` : `it will ask turn ${state.turns} next`}`,
        {
          details: { turn, open: state.open?.turn ?? null, next: state.turns },
        },
      ),
    );
  return accept({ type: 'TurnAnswered', at, turn, answer: given, answerHash, epoch });
};

type Report = Of<'ReportRolloutReady'> | Of<'ReportAsked'> | Of<'ReportDelivered'> | Of<'ReportSteps'> | Of<'ReportFinished'> | Of<'ReportWorkerEnded'>;

const reported = (state: RolloutState, command: Report, at: TimestampMs): RolloutDecision => {
  switch (command.type) {
    case 'ReportRolloutReady': {
      if (state.status !== 'preparing') return ignore('this worker runs already');
      const { attempt, worker, execId, sandboxes } = command;
      return accept({ type: 'RolloutRunning', at, attempt, worker, execId, sandboxes });
    }
    case 'ReportAsked':
      return asked(state, command, at);
    case 'ReportDelivered':
      if (state.status !== 'answering' || state.open?.turn !== command.turn) return ignore('no such answer is on its way');
      return accept({ type: 'TurnDelivered', at, turn: command.turn, served: command.served });
    case 'ReportSteps':
      return isAhead(state, command.served) && command.steps.length > 0 && state.status === 'running'
        ? accept({ type: 'StepsRecorded', at, steps: newSteps(state, command.steps), served: command.served })
        : ignore('these steps are recorded already');
    case 'ReportFinished': {
      const { reward, result, exitCode, steps, served } = command;
      const end = ending('finished', at, { reward, result, exitCode });
      const unrecorded = newSteps(state, steps);
      return unrecorded.length > 0 ? accept<RolloutEvent>({ type: 'StepsRecorded', at, steps: unrecorded, served }, end) : accept(end);
    }
    case 'ReportWorkerEnded':
      return workerEnded(state, command, at);
  }
};

const asked = (state: RolloutState, { turn, request, requestHash, steps, served }: Of<'ReportAsked'>, at: TimestampMs): RolloutDecision => {
  if (turn < state.turns || (state.open?.turn === turn && state.open.requestHash === requestHash)) return ignore('this turn has been asked already');
  if (turn !== state.turns || (state.status !== 'running' && state.status !== 'asking'))
    return reject(
      wireError('TURN_OUT_OF_ORDER', `the worker of ${state.id} asked turn ${turn}; turn ${state.turns} is next`, { details: { turn, next: state.turns } }),
    );
  const open: RolloutEvent = { type: 'TurnAsked', at, turn, request, requestHash, served };
  const unrecorded = newSteps(state, steps);
  return unrecorded.length > 0 ? accept<RolloutEvent>({ type: 'StepsRecorded', at, steps: unrecorded, served }, open) : accept(open);
};

/** What comes after the steps that are told already: a driver that took over may tell some again. */
const newSteps = (state: RolloutState, steps: readonly StepRecord[]): StepRecord[] => steps.filter(({ step }) => step >= state.steps);
const isAhead = ({ served }: RolloutState, now: RolloutState['served']): boolean => now.stdoutBytes > served.stdoutBytes;

const workerEnded = (state: RolloutState, { lost, error }: Of<'ReportWorkerEnded'>, at: TimestampMs): RolloutDecision => {
  const attempt = state.attempt + 1;
  if (!lost || attempt >= ROLLOUT_ACTOR_LIMITS.attempts) return accept(ending('failed', at, { error }));
  return accept({ type: 'RolloutRestarting', at, attempt, error, transitionDeadlineAt: addMs(at, ROLLOUT_ACTOR_LIMITS.preparingMs) });
};

const replaced = (state: RolloutState, { role, lost, sandboxId }: Of<'ReportReplaced'>, at: TimestampMs): RolloutDecision =>
  state.sandboxes[role] === lost && lost !== sandboxId
    ? accept({ type: 'SandboxReplaced', at, role, lost, sandboxId })
    : ignore('this sandbox has been replaced already');

const deadlinePassed = (state: RolloutState, { kind, version }: Of<'RolloutDeadlinePassed'>, at: TimestampMs): RolloutDecision => {
  if (kind === 'life') return at >= state.deadlineAt ? accept(ending('expired', at, { error: lifeOver(state) })) : ignore('the rollout lives longer');
  if (version !== state.transition || state.transitionDeadlineAt === null || at < state.transitionDeadlineAt) return ignore('this step is over');
  const message = `the sandboxes of ${state.id} were not ready in time; look at their requests, then start it again`;
  return accept(ending('failed', at, { error: wireError('DEADLINE_EXCEEDED', message, { outcome: 'not_applied' }) }));
};

const whileEnding = (state: RolloutState, command: RolloutCommand, at: TimestampMs): RolloutDecision => {
  if (command.type === 'ReportCleaned') return accept({ type: 'RolloutEnded', at });
  const isLate = command.type === 'RolloutDeadlinePassed' && command.kind === 'transition' && command.version === state.transition;
  if (isLate && state.transitionDeadlineAt !== null && at >= state.transitionDeadlineAt)
    return accept({ type: 'RolloutEndRetried', at, transitionDeadlineAt: addMs(at, ROLLOUT_ACTOR_LIMITS.endingMs) });
  return ignore('the rollout is ending');
};

const lifeOver = (state: RolloutState): WireError => wireError('EXPIRED', `rollout ${state.id} reached the end of its life after ${state.turns} turns`);

const ending = (outcome: Outcome, at: TimestampMs, over: Partial<Pick<Ending, 'reward' | 'result' | 'exitCode' | 'error'>>): Ending => ({
  type: 'RolloutEnding',
  at,
  outcome,
  reward: over.reward ?? null,
  result: over.result ?? null,
  exitCode: over.exitCode ?? null,
  error: over.error ?? null,
  transitionDeadlineAt: addMs(at, ROLLOUT_ACTOR_LIMITS.endingMs),
});
