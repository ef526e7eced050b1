/** A job of hundreds as a whole: one call pauses, resumes and ends them all, tells how far it is, and what became of each. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DsecClient, MembersByStatus } from '#sdk/mod.ts';
import { type ControlPlane, startControlPlane } from '#test/helpers/control-plane.ts';

const MEMBERS = 600;

let plane: ControlPlane;
let dsec: DsecClient;
beforeAll(async () => {
  plane = await startControlPlane({ control: [['apiserver', 'iam', 'watcher', 'jobs'], ['placement']], fleet: [4] });
  dsec = await plane.connect();
}, 60_000);
afterAll(async () => {
  await dsec?.close();
  await plane?.close();
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
