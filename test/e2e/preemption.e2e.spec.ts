/** The core of `npm run demo:preemption`: trainers killed, the job paused as a whole, the Edge killed; nothing is lost or done twice. */
import { expect, test } from 'vitest';
import { TrainerChild } from '#infra/demo/training/trainer-child.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { bundled } from '#test/helpers/bundled.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { scriptedRollout } from '#test/helpers/rollouts.ts';

const EPISODES = 12;
const TURNS = 4;
const THINK_MS = 60;

let host: TestPlatform;
let dsec: DsecClient;
let program: string;

givenPlatform({}, async (given) => {
  program = await bundled('test/helpers/answering-trainer.ts');
  ({ host, dsec } = given);
});

test('12 episodes survive three deaths of their trainer, one of the Edge, and a pause of the whole job', async () => {
  const opener = await dsec.openJob('preempted', { leaseMs: 4_000 });
  const { jobId } = opener;
  await opener.start(Array.from({ length: EPISODES }, (_, i) => scriptedRollout(`episode-${i}`, TURNS)));
  await opener.detach();

  let given = 0;
  const begin = () => new TrainerChild(program, [host.platform.contextFile, jobId, `${THINK_MS}`], ({ event }) => (given += event === 'turn' ? 1 : 0));
  const moreTurns = async (trainer: TrainerChild, count: number): Promise<void> => {
    const until = given + count;
    await expect.poll(() => given >= until || trainer.hasExited, { timeout: 60_000, interval: 20 }).toBe(true);
    expect(trainer.complaint).toBe('');
  };

  const first = begin();
  await moreTurns(first, 5);
  await first.kill();

  const paused = await dsec.jobs.pause(jobId);
  expect(paused).toMatchObject({ failed: 0, left: 0 });
  const members = [];
  for await (const box of dsec.list({ labels: { 'dsec/job': jobId } })) members.push(box.status);
  expect(members.filter((status) => status === 'paused')).toHaveLength(members.filter((status) => status !== 'stopped').length);
  await dsec.jobs.resume(jobId);

  const second = begin();
  await moreTurns(second, 5);
  process.kill(host.platform.pids().edge as number, 'SIGKILL');
  await moreTurns(second, 3);
  await second.kill();

  const third = begin();
  await moreTurns(third, 4);
  await third.kill();

  const last = begin();
  await last.exited();
  expect([last.complaint, last.isFinished]).toEqual(['', true]);

  await using trainer = await dsec.attachJob(jobId, { takeover: true });
  const results = [];
  for await (const result of trainer.results()) results.push(result);
  const seen = results.map((r) => [r.outcome, r.turns, r.steps, (r.result as { counted: string }).counted]);
  expect(seen).toEqual(Array.from({ length: EPISODES }, () => ['finished', TURNS, TURNS + 1, `${TURNS}\n${TURNS}\n`]));
  await trainer.stopJob();
  const left = [];
  for await (const box of dsec.list({ labels: { 'dsec/job': jobId }, status: ['running', 'paused', 'starting', 'stopping'] })) left.push(box.id);
  expect(left).toEqual([]);
});
