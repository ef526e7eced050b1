/** One rollout and every command it can get, with the values that make a difference. */
import { wireError } from '#bus/errors.ts';
import { ClientKey, type EdgeName, execIdFor, jobIdFor, type ProjectName, requestIdFor, rolloutIdFor, type SandboxId, sandboxIdFor } from '#bus/ids.ts';
import { type RolloutCommand, RolloutSpec, StepRecord } from '#bus/rollout/schema.ts';
import { rolloutAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';

export const T0 = 1_700_000_000_000;
export const LIFE_MS = 4 * 3_600_000;
const project = 'acme' as ProjectName;
const key = ClientKey.parse('task-1/0');
export const jobId = jobIdFor(project, ClientKey.parse('train-7'), 4);
export const rolloutId = rolloutIdFor(jobId, key);
export const address = rolloutAddress(project, rolloutId);

export const boxNamed = (name: string): SandboxId => sandboxIdFor(requestIdFor(project, ClientKey.parse(name), 4), 0, 0, 'edge-1' as EdgeName);
const spec = RolloutSpec.parse({
  task: { repository: 'left-pad' },
  worker: { sandbox: { image: 'debian' }, program: { argv: ['worker'] } },
  sandboxes: { agent: { image: 'debian', workspaces: ['left-pad'] } },
  lifeMs: LIFE_MS,
});
const lost = wireError('SANDBOX_LOST', 'its node was lost');
const crashed = wireError('SANDBOX_FAILED', 'the worker ended with 1 and said no result');

export const start = (bodyHash = 'b0d1', jobDeadlineAt = T0 + 10 * LIFE_MS): RolloutCommand => ({
  type: 'StartRollout',
  jobId,
  key,
  bodyHash,
  spec,
  jobDeadlineAt: jobDeadlineAt as TimestampMs,
});
export const ready = (attempt: number): RolloutCommand => {
  const worker = boxNamed(`worker-${attempt}`);
  return { type: 'ReportRolloutReady', attempt, worker, execId: execIdFor(worker, ClientKey.parse('worker')), sandboxes: { agent: boxNamed('agent-0') } };
};
export const step = (n: number): StepRecord =>
  StepRecord.parse({
    step: n,
    role: 'agent',
    sandboxId: boxNamed('agent-0'),
    execId: null,
    command: `make test-${n}`,
    exitCode: 0,
    reason: 'exited',
    stdoutBytes: 10,
    stderrBytes: 0,
    startedAt: T0,
    durationMs: 5,
    error: null,
  });
const served = (turn: number) => ({ stdoutBytes: 100 * (turn + 1), stdinBytes: 10 * turn });
export const asked = (attempt: number, turn: number, steps: StepRecord[] = [], requestHash = `q${turn}`): RolloutCommand => ({
  type: 'ReportAsked',
  attempt,
  turn,
  request: { messages: [`turn ${turn}`] },
  requestHash,
  steps,
  served: served(turn),
});
export const answer = (turn: number, answerHash = `a${turn}`, epoch = 1, jobEpoch = 1): RolloutCommand => ({
  type: 'AnswerTurn',
  turn,
  answer: { text: answerHash },
  answerHash,
  epoch,
  jobEpoch,
});
export const delivered = (attempt: number, turn: number): RolloutCommand => ({ type: 'ReportDelivered', attempt, turn, served: served(turn) });
export const stepped = (attempt: number, ...steps: StepRecord[]): RolloutCommand => ({
  type: 'ReportSteps',
  attempt,
  steps,
  served: { stdoutBytes: 1_000 + 10 * (steps.at(-1)?.step ?? 0), stdinBytes: 5 },
});
export const replaced = (from: string, to: string): RolloutCommand => ({
  type: 'ReportReplaced',
  role: 'agent',
  lost: boxNamed(from),
  sandboxId: boxNamed(to),
});
export const finished = (attempt: number, steps: StepRecord[] = []): RolloutCommand => ({
  type: 'ReportFinished',
  attempt,
  reward: 1,
  result: { passed: true },
  exitCode: 0,
  steps,
  served: { stdoutBytes: 9_000, stdinBytes: 90 },
});
export const workerEnded = (attempt: number, isLost: boolean): RolloutCommand => ({
  type: 'ReportWorkerEnded',
  attempt,
  lost: isLost,
  error: isLost ? lost : crashed,
});
export const stop: RolloutCommand = { type: 'StopRollout' };
export const cleaned: RolloutCommand = { type: 'ReportCleaned' };
export const passed = (kind: 'life' | 'transition', version: number): RolloutCommand => ({ type: 'RolloutDeadlinePassed', kind, version });

export const COMMANDS: readonly RolloutCommand[] = [
  start(),
  start('other'),
  start('b0d1', T0),
  stop,
  cleaned,
  replaced('agent-0', 'agent-1'),
  replaced('agent-1', 'agent-1'),
  ...[0, 1].flatMap((attempt) => [
    ready(attempt),
    finished(attempt, [step(0)]),
    workerEnded(attempt, true),
    workerEnded(attempt, false),
    stepped(attempt, step(0)),
    stepped(attempt),
    ...[0, 1, 2].flatMap((turn) => [asked(attempt, turn), delivered(attempt, turn)]),
    asked(attempt, 0, [step(0), step(1)]),
    asked(attempt, 0, [], 'changed'),
  ]),
  ...[0, 1, 2].flatMap((turn) => [answer(turn), answer(turn, 'other'), answer(turn, `a${turn}`, 1, 2)]),
  ...[0, 1, 2, 3].map((version) => passed('transition', version)),
  passed('life', 0),
];
export const DELAYS_MS: readonly number[] = [0, 130_000, 1_900_000, LIFE_MS];
