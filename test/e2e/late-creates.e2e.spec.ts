/**
 * INV-ORPHAN: creates that surface long after their job was stopped make nothing, wherever they waited meanwhile: in a lane, because no
 * placement lived, or before their node, because that stood still. Caught by what the log says of the job, not by waiting for them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { ENDED_STATUSES } from '#bus/sandbox/state.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { type ControlPlane, startControlPlane } from '#test/helpers/control-plane.ts';

const CREATES = 40;
/** How long they stay away: nothing looks for stragglers that long. */
const AWAY_MS = 4_000;
const PATIENCE = { timeout: 60_000 };

let plane: ControlPlane | undefined;
let dsec: DsecClient | undefined;
afterEach(async () => {
  await dsec?.close();
  await plane?.close();
});

const start = async (): Promise<{ plane: ControlPlane; dsec: DsecClient }> => {
  plane = await startControlPlane({ control: [['apiserver', 'iam', 'watcher', 'jobs'], ['placement']], fleet: [3], overrides: { leaseMs: 30_000 } });
  dsec = await plane.connect();
  return { plane, dsec };
};

const createAll = (client: DsecClient, job: string) =>
  Array.from({ length: CREATES }, (_, n) =>
    client.runContainer({ image: 'small', job, key: `late-${n}` }, { timeoutMs: 60_000 }).catch((thrown: unknown) => thrown),
  );

const statuses = async (client: DsecClient, job: string): Promise<string[]> => {
  const found: string[] = [];
  for await (const box of client.list({ labels: { 'dsec/job': job } })) found.push((await box.refresh()).status);
  return found;
};

test('in their lane: whoever places them later refuses them', async () => {
  const { plane: running, dsec: client } = await start();
  const { state: job } = await client.jobs.create('late', {});
  const { state: beside } = await client.jobs.create('beside', {});
  await running.control[1]?.stop();
  const creates = [...createAll(client, job.id), client.runContainer({ image: 'small', job: beside.id }, { timeoutMs: 60_000 })];
  await delay(500); // accepted: they wait in the lane
  expect(await client.jobs.stop(job.id)).toEqual({ reached: 0, failed: 0, left: 0 });
  await delay(AWAY_MS);
  await running.startControl(['placement']);
  const results = await Promise.all(creates);
  const last = results.pop();
  for (const one of results) expect(one).toMatchObject({ code: 'JOB_ENDED', outcome: 'not_applied' });
  expect(last).toMatchObject({ status: 'running' }); // the other job's is made
  expect(await statuses(client, job.id)).toEqual([]);
});

test('before their node: it has taken them, and starts none', async () => {
  const { plane: running, dsec: client } = await start();
  const { state: job } = await client.jobs.create('late', {});
  const fleet = running.fleet[0]?.pid as number;
  process.kill(fleet, 'SIGSTOP');
  let creates: Promise<unknown>[];
  try {
    creates = createAll(client, job.id);
    await delay(1_500); // placed and forwarded: they wait before the nodes
    expect((await client.jobs.stop(job.id))?.left).toBe(0);
    await delay(AWAY_MS);
  } finally {
    process.kill(fleet, 'SIGCONT');
  }
  const results = await Promise.all(creates);
  for (const one of results) expect(one).toMatchObject({ code: 'JOB_ENDED' });
  await expect.poll(async () => (await statuses(client, job.id)).every((status) => ENDED_STATUSES.has(status as never)), PATIENCE).toBe(true);
  expect((await statuses(client, job.id)).length).toBeGreaterThan(0); // they had come that far
});
