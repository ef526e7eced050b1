/** A job of hundreds as a whole: one call pauses, resumes and ends them all, tells how far it is, and what became of each. */
import { expect, test } from 'vitest';
import type { DsecClient, MembersByStatus } from '#sdk/mod.ts';
import { refusal } from '#test/helpers/refusal.ts';
import { givenControlPlane } from '#test/helpers/given.ts';

const MEMBERS = 600;

let dsec: DsecClient;
givenControlPlane({ control: [['apiserver', 'iam', 'watcher', 'jobs'], ['placement']], fleet: [4] }, (given) => {
  ({ dsec } = given);
});

const statuses = async (job: string): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for await (const { status } of dsec.jobs.members(job)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

test(`${MEMBERS} members are paused, resumed and ended by one call each; those that had ended before are none of its concern`, {
  timeout: 240_000,
}, async () => {
  const { state: job } = await dsec.jobs.create('many', { leaseMs: 60_000 as never });
  const beside = await dsec.runContainer({ image: 'small' });
  const { sandboxes } = await dsec.runContainers({ image: 'small', job: job.id, memoryLimitMb: 8 }, { count: MEMBERS });
  expect(sandboxes).toHaveLength(MEMBERS);
  const gone = sandboxes.slice(0, 5);
  await Promise.all(gone.map((box) => box.stop()));
  const living = MEMBERS - gone.length;

  const told: MembersByStatus[] = [];
  const onProgress = (members: MembersByStatus) => void told.push(members);
  expect(await dsec.jobs.pause(job.id, { onProgress })).toEqual({ reached: living, failed: 0, left: 0 });
  expect(await statuses(job.id)).toEqual({ paused: living, stopped: gone.length });
  expect(await dsec.jobs.resume(job.id, { onProgress })).toEqual({ reached: living, failed: 0, left: 0 });
  expect(await statuses(job.id)).toEqual({ running: living, stopped: gone.length });
  // Somebody ends some of them while they are paused again: they count as having come to their end.
  const [, counts] = await Promise.all([Promise.all(sandboxes.slice(5, 10).map((box) => box.stop())), dsec.jobs.pause(job.id, { onProgress })]);
  expect((counts?.reached ?? 0) + (counts?.failed ?? 0)).toBeLessThanOrEqual(living);
  expect(counts?.left).toBe(0);
  expect(await statuses(job.id)).toEqual({ paused: living - 5, stopped: gone.length + 5 });
  expect(await dsec.jobs.stop(job.id, { onProgress })).toMatchObject({ failed: 0, left: 0 });
  expect(await statuses(job.id)).toEqual({ stopped: MEMBERS });
  for (const members of told) expect(Object.values(members).reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(MEMBERS);
  expect((await beside.refresh()).status).toBe('running');
  await beside.stop();
});

test('a share bounds groups as it bounds single ones, by whatever runs out first, and what has ended is free again', { timeout: 240_000 }, async () => {
  const { state: job } = await dsec.jobs.create('shared', { share: { sandboxes: 20, memoryMiB: 200 } });
  const options = { image: 'small', job: job.id, memoryLimitMb: 16 };
  const whole = dsec.runContainers(options, { count: 13, mode: 'allOrNothing' });
  expect(await refusal(whole.then((group) => group.orThrow()))).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    details: { job: job.id, key: 'memoryMiB', limit: 200 },
  });
  const some = await dsec.runContainers(options, { count: 40 });
  expect(some.sandboxes).toHaveLength(12); // 16 MiB each
  for (const { error } of some.failures)
    expect(error).toMatchObject({ code: 'QUOTA_EXCEEDED', details: { job: job.id, key: 'memoryMiB', limit: 200, used: 192 } });
  const small = await dsec.runContainers({ ...options, memoryLimitMb: 4 }, { count: 2 }); // 8 MiB are left
  expect(small.sandboxes).toHaveLength(2);
  await Promise.all([...some.sandboxes, ...small.sandboxes].map((box) => box.stop()));
  const tiny = await dsec.runContainers({ ...options, memoryLimitMb: 4 }, { count: 40 });
  expect(tiny.sandboxes).toHaveLength(20);
  for (const { error } of tiny.failures) expect(error).toMatchObject({ details: { key: 'sandboxes', limit: 20, used: 20 } });
  await dsec.jobs.stop(job.id);
});
