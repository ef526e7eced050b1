/** What owners of jobs get wrong, and what races with the end of a job: typed, harmless, nothing half done. */
import { describe, expect, test } from 'vitest';
import type { DsecClient } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { refusal } from '#test/helpers/refusal.ts';

let dsec: DsecClient;

givenPlatform({}, (given) => {
  ({ dsec } = given);
});

const living = async (jobId: string): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { id } of dsec.list({ labels: { 'dsec/job': jobId }, status: ['preparing', 'starting', 'running', 'pausing', 'paused', 'stopping'] }))
    ids.push(id);
  return ids;
};

describe('a sandbox', () => {
  test('that has stopped is not resumed', async () => {
    const box = await dsec.runContainer({ image: 'small' });
    await box.stop();
    expect((await refusal(box.resume())).code).toMatch(/^(SANDBOX_ENDED|INVALID_STATE)$/);
    expect((await box.refresh()).status).toBe('stopped');
  });

  test('paused during a command with a time-out does not use up that time', async () => {
    const box = await dsec.runContainer({ image: 'small' });
    const command = await box.start('sleep 1; echo done', { timeoutMs: 2_500 });
    await box.pause();
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // longer than the command may take
    await box.resume();
    expect(await command.result()).toMatchObject({ reason: 'exited', stdout: 'done\n' });
    await box.stop();
  });
});

describe('a job', () => {
  test('has one owner of two who claim it at once, and the one who lost it is told', async () => {
    const { state } = await dsec.jobs.create('claimed', { leaseMs: 2_000 as never });
    const claims = await Promise.allSettled(['a', 'b', 'c'].map((holder) => dsec.attachJob(state.id, { holder })));
    const won = claims.filter((claim) => claim.status === 'fulfilled');
    expect(won).toHaveLength(1);
    for (const claim of claims) if (claim.status === 'rejected') expect(claim.reason).toMatchObject({ code: 'JOB_OWNED' });
    await using second = await dsec.attachJob(state.id, { holder: 'd', takeover: true });
    expect(second.epoch).toBeGreaterThan(won[0]?.value.epoch ?? 0);
    await second.stopJob();
    await won[0]?.value.detach();
  });

  test('goes on when its owner comes back after the policy has acted', async () => {
    const owner = await dsec.openJob('comes-back', { leaseMs: 2_000 as never, onOwnerLost: 'pause' });
    const { jobId } = owner;
    const box = await dsec.runContainer({ image: 'small', job: jobId as never });
    await owner.detach(); // as if it had died: the lease runs out, and the policy pauses the members
    const stateOf = async () => (await dsec.jobs.get(jobId)).state;
    await expect.poll(async () => (await stateOf()).status, { timeout: 20_000 }).toBe('paused');
    expect(await stateOf()).toMatchObject({ owner: null, counts: { reached: 1, failed: 0, left: 0 } });
    expect((await box.refresh()).status).toBe('paused');
    expect(await refusal(dsec.runContainer({ image: 'small', job: jobId as never }))).toMatchObject({ code: 'INVALID_STATE' });
    await using again = await dsec.attachJob(jobId);
    await expect.poll(async () => (await box.refresh()).status, { timeout: 10_000 }).toBe('running');
    await again.stopJob();
  });

  test('has the members that name it, and none that only carry its label', async () => {
    const { state } = await dsec.jobs.create('named', {});
    const forged = await refusal(dsec.runContainer({ image: 'small', labels: { 'dsec/job': state.id } }));
    expect(forged).toMatchObject({ code: 'INVALID_ARGUMENT', outcome: 'not_applied' });
    const member = await dsec.runContainer({ image: 'small', job: state.id, labels: { 'dsec/job': 'jb-of-somebody-else' } });
    expect((await member.refresh()).spec.labels['dsec/job']).toBe(state.id);
    await member.extend({ ttlTotal: 6 * 86_400 }); // no life beyond the job's, but for the way to its node, which counts it on its own clock
    expect((await member.refresh()).totalDeadlineAt).toBeLessThanOrEqual(state.deadlineAt + 60_000);
    await dsec.jobs.stop(state.id);
  });

  test('that is stopped while members are being made leaves none', async () => {
    const { state } = await dsec.jobs.create('races', {});
    const made = Promise.allSettled(
      Array.from({ length: 24 }, () => dsec.runContainer({ image: 'small', job: state.id, memoryLimitMb: 16 }, { timeoutMs: 20_000 })),
    );
    const counts = await dsec.jobs.stop(state.id);
    expect(counts).toMatchObject({ failed: 0, left: 0 });
    for (const one of await made) if (one.status === 'rejected') expect(['JOB_ENDED', 'SANDBOX_ENDED', 'SANDBOX_FAILED']).toContain(one.reason.code);
    expect(await living(state.id)).toEqual([]);
  });
});
