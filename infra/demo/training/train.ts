/**
 * A trainer in a hundred lines: attach to a job, answer its turns by the policy, learn from what ended. What it needs to learn is in
 * the trajectories, so it may be killed at any moment; only the policy's own file is its state.
 */
import type { RolloutResult, Trainer, Turn } from '#sdk/mod.ts';
import { type Choice, Policy } from './policy.ts';
import { TASK_COUNT } from './tasks.ts';

export type TrainOptions = {
  readonly trainer: Trainer;
  readonly policy: Policy;
  readonly policyFile: string;
  /** Of time spent by a model that is bigger than this one. */
  readonly thinkMs?: number;
  readonly onTurn?: (turn: Turn) => void;
  readonly onResult?: (result: RolloutResult, isSound: boolean) => void;
};

export const openPolicy = (file: string, random?: () => number): Policy => Policy.load(file, TASK_COUNT, random);

type Observed = { readonly failing: readonly string[] };
export const observationOf = (request: unknown): string => (request as Observed).failing.join('|');

/** Answers and learns until every rollout of the job has ended. */
export const train = async (o: TrainOptions): Promise<void> => {
  await Promise.all([answerTurns(o), learnFromResults(o)]);
};

const answerTurns = async ({ trainer, policy, thinkMs = 0, onTurn }: TrainOptions): Promise<void> => {
  const answering = new Set<Promise<void>>();
  let failure: unknown;
  for await (const turn of trainer.turns()) {
    if (failure) throw failure;
    onTurn?.(turn);
    const answered: Promise<void> = thinkAndAnswer(turn, policy, thinkMs)
      .catch((thrown: unknown) => {
        failure ??= thrown;
      })
      .finally(() => answering.delete(answered));
    answering.add(answered);
  }
  await Promise.all(answering);
  if (failure) throw failure;
};

const thinkAndAnswer = async (turn: Turn, policy: Policy, thinkMs: number): Promise<void> => {
  await new Promise((resolve) => setTimeout(resolve, thinkMs));
  await turn.answer({ action: policy.choose(observationOf(turn.request)) });
};

const learnFromResults = async (o: TrainOptions): Promise<void> => {
  for await (const result of o.trainer.results()) {
    // What the platform broke is masked: it says nothing about the policy.
    const isSound = result.outcome === 'finished' && result.fault === null;
    if (isSound && !o.policy.hasLearntFrom(result.rolloutId)) {
      o.policy.learn({ id: result.rolloutId, group: result.group, reward: result.reward ?? 0, choices: await choicesOf(o.trainer, result) });
      o.policy.save(o.policyFile);
    }
    o.onResult?.(result, isSound);
  }
};

/** What was seen and done, from the trajectory: also what a trainer did that has been killed since. */
const choicesOf = async (trainer: Trainer, { rolloutId }: RolloutResult): Promise<Choice[]> => {
  const choices: Choice[] = [];
  let observation = '';
  for await (const record of trainer.trajectory(rolloutId)) {
    if (record.type === 'TurnAsked') observation = observationOf(record.request);
    if (record.type === 'TurnAnswered') choices.push({ observation, action: (record.answer as { action: number }).action });
  }
  return choices;
};

/** Whether the policy can be told apart from chance: rollouts solved at their first turn. */
export const firstTurnShare = (results: readonly RolloutResult[]): number =>
  results.filter((r) => (r.result as { isSolved?: boolean; turns?: number } | null)?.isSolved && r.turns === 1).length / Math.max(1, results.length);
