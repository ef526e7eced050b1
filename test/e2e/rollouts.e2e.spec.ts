/** Episodes that outlive their trainer and the platform's own processes: every turn answered once, every step run once. */
import { describe, expect, test } from 'vitest';
import type { DsecClient, Trainer, Turn } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { scriptedRollout } from '#test/helpers/rollouts.ts';
import { openRawSession } from '#test/helpers/raw-session.ts';
import { refusal } from '#test/helpers/refusal.ts';

let host: TestPlatform;
let dsec: DsecClient;

givenPlatform({}, (given) => {
  ({ host, dsec } = given);
});

/** Answers every turn that comes, until `until` says so or the rollouts have ended. */
const answerAll = async (trainer: Trainer, until: (turn: Turn, n: number) => boolean = () => false): Promise<number> => {
  let n = 0;
  for await (const turn of trainer.turns()) {
    n += 1;
    if (until(turn, n)) return n;
    await turn.answer(`echo turn-${turn.turn}`);
  }
  return n;
};
const resultsOf = async (trainer: Trainer) => {
  const results = [];
  for await (const result of trainer.results()) results.push(result);
  return results;
};

describe('an episode', () => {
  test('runs to its reward; its trajectory tells every turn and step in order', async () => {
    await using trainer = await dsec.openJob('plain');
    const [id] = await trainer.start([scriptedRollout('one', 3)]);
    expect(await answerAll(trainer)).toBe(3);
    const [result] = await resultsOf(trainer);
    expect(result).toMatchObject({
      rolloutId: id,
      outcome: 'finished',
      reward: 1,
      fault: null,
      turns: 3,
      steps: 4,
      exitCode: 0,
      result: { counted: '3\n3\n' },
    });
    const told = [];
    for await (const record of trainer.trajectory(result?.rolloutId as never)) told.push(record.type === 'TurnAnswered' ? record.answer : record.type);
    expect(told.filter((t) => t !== 'TurnAsked' && t !== 'TurnDelivered')).toEqual([
      'RolloutStarted',
      'RolloutRunning',
      'echo turn-0',
      'StepsRecorded',
      'echo turn-1',
      'StepsRecorded',
      'echo turn-2',
      'StepsRecorded',
      'RolloutEnding',
      'RolloutEnded',
    ]);
    await trainer.stopJob();
  });

  test('of a worker that crashes has failed by its own fault, and leaves no sandbox', async () => {
    await using trainer = await dsec.openJob('crashing');
    const order = scriptedRollout('crash', 1);
    await trainer.start([{ key: 'crash', spec: { ...order.spec, worker: { ...order.spec.worker, program: { argv: ['sh', '-c', 'read start; exit 3'] } } } }]);
    const [result] = await resultsOf(trainer);
    expect(result).toMatchObject({
      outcome: 'failed',
      fault: 'environment',
      error: { code: 'SANDBOX_FAILED', message: expect.stringContaining('ended with 3') },
    });
    const left = [];
    for await (const box of dsec.list({ labels: { 'dsec/job': trainer.jobId }, status: ['running', 'starting', 'stopping'] })) left.push(box.id);
    expect(left).toEqual([]);
    await trainer.stopJob();
  });

  test('is refused what makes no sense, typed and harmless', async () => {
    await using trainer = await dsec.openJob('refusals');
    await trainer.start([scriptedRollout('r', 2)]);
    expect((await refusal(trainer.start([scriptedRollout('r', 5)]))).code).toBe('KEY_CONFLICT');
    for await (const turn of trainer.turns()) {
      await turn.answer('true');
      await turn.answer('true');
      expect((await refusal(turn.answer('false'))).code).toBe('TURN_ANSWERED');
      if (turn.turn === 0) expect((await refusal(dsec.attachJob(trainer.jobId, { holder: 'somebody-else' }))).code).toBe('JOB_OWNED');
    }
    expect((await resultsOf(trainer))[0]).toMatchObject({ outcome: 'finished', turns: 2 });
    await trainer.stopJob();
    expect((await refusal(dsec.attachJob(trainer.jobId))).code).toBe('JOB_ENDED');
    expect((await refusal(dsec.runContainer({ image: 'small', job: trainer.jobId }))).code).toBe('JOB_ENDED');
  });
});

describe('a trainer that is wrong', () => {
  test('about the turn: twice, too early, too late, of another episode; each is told so and nothing is harmed', async () => {
    await using trainer = await dsec.openJob('out-of-order');
    const [id] = await trainer.start([scriptedRollout('o', 3)]);
    const raw = await openRawSession(host.platform.contextFile);
    const answer = (turn: number, value: unknown, epoch = trainer.epoch) => raw.api.call('answerTurn', { id: id as never, turn, answer: value, epoch });
    const kept: Turn[] = [];
    for await (const turn of trainer.turns()) {
      kept.push(turn);
      expect(await refusal(answer(turn.turn + 1, 'true'))).toMatchObject({ code: 'TURN_OUT_OF_ORDER', outcome: 'not_applied', details: { open: turn.turn } });
      if (turn.turn > 1) expect(await refusal(answer(turn.turn - 2, 'true'))).toMatchObject({ code: 'TURN_OUT_OF_ORDER' });
      expect(await refusal(answer(turn.turn, 'true', 0))).toMatchObject({ code: 'LEASE_LOST' });
      await Promise.all([turn.answer('true'), turn.answer('true'), answer(turn.turn, 'true')]); // the same one: once
      expect(await refusal(answer(turn.turn, 'false'))).toMatchObject({ code: expect.stringMatching(/^TURN_(ANSWERED|OUT_OF_ORDER)$/) });
    }
    expect(await refusal((kept[0] as Turn).answer('late'))).toMatchObject({ code: expect.stringMatching(/^(ROLLOUT_ENDED|TURN_OUT_OF_ORDER)$/) });
    expect((await resultsOf(trainer))[0]).toMatchObject({ outcome: 'finished', turns: 3, result: { counted: '3\n3\n' } });
    await raw.bus.close();
    await trainer.stopJob();
  });

  test('about its lease: one that stood still for longer is told when it goes on, and has changed nothing', async () => {
    const { state: job } = await dsec.jobs.create('stood-still', { leaseMs: 2_000 as never, onOwnerLost: 'keep' });
    await dsec.jobs.startRollouts(job.id, [scriptedRollout('s', 1)]);
    const raw = await openRawSession(host.platform.contextFile);
    const { job: claimed } = await raw.api.call('claimJob', { id: job.id, holder: 'sleeper' });
    const renew = () => raw.api.call('renewJob', { id: job.id, holder: 'sleeper', epoch: claimed.state.epoch });
    await renew();
    await expect.poll(async () => (await dsec.jobs.get(job.id)).state.owner, { timeout: 20_000 }).toBeNull(); // it renews no more
    expect(await refusal(renew())).toMatchObject({ code: 'LEASE_LOST', outcome: 'not_applied' });
    await using next = await dsec.attachJob(job.id);
    expect(next.epoch).toBe(claimed.state.epoch + 1);
    expect(await refusal(renew())).toMatchObject({ code: 'LEASE_LOST', details: { epoch: next.epoch } });
    await answerAll(next);
    expect((await resultsOf(next))[0]).toMatchObject({ outcome: 'finished' });
    await raw.bus.close();
    await next.stopJob();
  });
});

describe('a trainer that goes', () => {
  test('is replaced by one that knows the job’s id alone, and cannot answer any more', async () => {
    const first = await dsec.openJob('preempted');
    await first.start(Array.from({ length: 8 }, (_, i) => scriptedRollout(`p-${i}`, 3)));
    let kept: Turn | undefined;
    await answerAll(first, (turn, n) => {
      kept = turn;
      return n === 9;
    });
    await first.detach();
    await using second = await dsec.attachJob(first.jobId, { takeover: true });
    expect((await refusal((kept as Turn).answer('echo late'))).code).toBe('LEASE_LOST');
    await answerAll(second);
    const results = await resultsOf(second);
    expect(results.map((r) => [r.outcome, r.turns, (r.result as { counted: string }).counted])).toEqual(
      Array.from({ length: 8 }, () => ['finished', 3, '3\n3\n']),
    );
    await second.stopJob();
  });

  test('and processes of the platform that are killed meanwhile: nothing runs twice', async () => {
    await using trainer = await dsec.openJob('killed');
    await trainer.start(Array.from({ length: 6 }, (_, i) => scriptedRollout(`k-${i}`, 4)));
    let answered = 0;
    for await (const turn of trainer.turns()) {
      if (answered === 4 || answered === 13) process.kill(host.platform.pids().control as number, 'SIGKILL');
      if (answered === 8) process.kill(host.platform.pids().edge as number, 'SIGKILL');
      answered += 1;
      await turn.answer(`echo turn-${turn.turn}`);
    }
    const results = await resultsOf(trainer);
    expect(results.map((r) => [r.outcome, r.turns, r.steps, (r.result as { counted: string }).counted])).toEqual(
      Array.from({ length: 6 }, () => ['finished', 4, 5, '4\n4\n']),
    );
    await trainer.stopJob();
  });
});
