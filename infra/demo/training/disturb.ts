/** What happens to the episodes while they run: their trainer dies three times, the Edge once, the job is paused as a whole. */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { projectRoot } from '#runtime/project-root.ts';
import type { Platform } from '#runtime/roles/up/platform.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { type NamespaceRecord, recordNamespaces } from '../leftovers.ts';
import { availableMiB, type Memory, memoryOfJob } from './memory.ts';
import { TrainerChild } from './trainer-child.ts';

export type Disturbed = {
  readonly trainerKills: number;
  readonly edgeKills: number;
  /** From the start of a trainer to its first turn, in seconds. */
  readonly firstTurnSeconds: readonly number[];
  readonly paused: { readonly members: number; readonly before: Memory; readonly during: Memory; readonly seconds: number } | undefined;
  /** Of the sandboxes, while most of them lived. */
  readonly namespaces: NamespaceRecord;
  readonly problems: readonly string[];
  stop(): void;
};

export type DisturbOptions = {
  readonly dsec: DsecClient;
  readonly jobId: string;
  readonly platform: Platform;
  readonly dir: string;
  readonly episodes: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

/** Of a model that is bigger than this one: the episodes wait for it, as they would. */
const THINK_MS = 400;
const LOOK_MS = 20;
/** Sandboxes of 64 episodes take their time on a small machine: whoever watches is told that it goes on. */
const TELL_MS = 10_000;

export const disturb = async (o: DisturbOptions): Promise<Disturbed> => {
  const { say } = o;
  const state = { answered: 0, finished: false };
  const firstTurnSeconds: number[] = [];
  const problems: string[] = [];
  let trainer: TrainerChild | undefined;
  const begin = (): TrainerChild => {
    const startedAt = performance.now();
    let hasTurn = false;
    trainer = new TrainerChild(
      join(projectRoot(), 'build/demo-trainer.mjs'),
      [o.platform.contextFile, o.jobId, join(o.dir, 'policy.json'), `${THINK_MS}`],
      ({ event }) => {
        if (event === 'turn') state.answered += 1;
        if (event === 'finished') state.finished = true;
        if (event !== 'turn' || hasTurn) return;
        hasTurn = true;
        firstTurnSeconds.push((performance.now() - startedAt) / 1_000);
      },
    );
    return trainer;
  };
  /** Waits until so many more turns were given out, or nothing is left to wait for. */
  const moreTurns = async (count: number): Promise<void> => {
    for (const until = state.answered + count; state.answered < until && !state.finished && !trainer?.hasExited; ) {
      o.signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    if (trainer?.hasExited && !state.finished) problems.push(`the trainer ended by itself: ${trainer.complaint}`);
  };

  const telling = setInterval(() => say(`${state.answered} turns so far`), TELL_MS).unref();
  o.signal.addEventListener('abort', () => clearInterval(telling), { once: true });
  begin();
  await moreTurns(1 + randomInt(o.episodes / 2));
  say(`kill -9 ${trainer?.pid}: the trainer, after ${state.answered} turns`);
  await trainer?.kill();

  const before = { ...memoryOfJob(o.platform), availableMiB: availableMiB() };
  say(`nobody holds the job; pausing it as a whole (${before.residentMiB} MiB resident in its sandboxes)`);
  const pids: number[] = [];
  for await (const box of o.dsec.list({ labels: { 'dsec/job': o.jobId } })) if (box.state?.pid) pids.push(box.state.pid);
  const namespaces = recordNamespaces(pids);
  const pausedAt = performance.now();
  const counts = await o.dsec.jobs.pause(o.jobId, { onProgress: ({ paused = 0 }) => say(`${paused} are paused`) });
  const seconds = (performance.now() - pausedAt) / 1_000;
  const during = await whenGivenBack(o.platform, before.residentMiB);
  say(`${counts?.reached ?? 0} sandboxes paused in ${seconds.toFixed(1)} s, ${during.residentMiB} MiB resident`);

  begin(); // attaches by the job's id alone, which wakes the job
  await moreTurns(1 + randomInt(o.episodes / 4));
  const edge = o.platform.pids().edge;
  say(`kill -9 ${edge}: the Edge`);
  if (edge !== undefined) process.kill(edge, 'SIGKILL');
  await moreTurns(1 + randomInt(o.episodes / 4));

  for (let n = 0; n < 2; n += 1) {
    say(`kill -9 ${trainer?.pid}: the trainer, after ${state.answered} turns`);
    await trainer?.kill();
    begin();
    if (n === 0) await moreTurns(1 + randomInt(o.episodes / 4));
  }
  await trainer?.exited();
  clearInterval(telling);
  if (!state.finished) problems.push(`the last trainer did not finish: ${trainer?.complaint}`);
  say('every episode has ended');
  return {
    trainerKills: 3,
    edgeKills: 1,
    firstTurnSeconds,
    paused: { members: counts?.reached ?? 0, before, during, seconds },
    namespaces,
    problems,
    stop: () => void trainer?.kill(),
  };
};

/** Giving memory back goes on after the pause itself; it is looked at for a while. */
const whenGivenBack = async (platform: Platform, beforeMiB: number): Promise<Memory> => {
  for (let looks = 0; ; looks += 1) {
    const now = { ...memoryOfJob(platform), availableMiB: availableMiB() };
    if (now.residentMiB < beforeMiB / 10 || looks >= GIVEN_BACK_LOOKS) return now;
    await new Promise((resolve) => setTimeout(resolve, GIVEN_BACK_LOOK_MS));
  }
};
const GIVEN_BACK_LOOKS = 40;
const GIVEN_BACK_LOOK_MS = 250;
