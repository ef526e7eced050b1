/**
 * INV-ORPHAN on a real node: the trainer, whoever owns the job, the control plane and the Edge with its launcher are all killed with
 * SIGKILL. Some of them come back, or none does for longer than the sandboxes may live: nothing is left of them either way.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TrainerChild } from '#infra/demo/training/trainer-child.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { ENDED_STATUSES } from '#bus/sandbox/state.ts';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { scriptedRollout } from '#test/helpers/rollouts.ts';
import { launchersBelow, processesOf, tracesOf } from '#test/helpers/kernel-traces.ts';

const PATIENCE = { timeout: 120_000, interval: 250 };
const THINK_MS = 3_600_000;

let host: TestPlatform;
let dsec: DsecClient;

beforeAll(async () => {
  host = await startTestPlatform({ restartMaxMs: 200 });
  dsec = await connect({ contextFile: host.platform.contextFile });
});
afterAll(async () => {
  await dsec?.close();
  await host?.close();
});

const killAll = (trainer: TrainerChild | null): Promise<void> => {
  const { control, edge } = host.platform.pids();
  const died = trainer?.kill() ?? Promise.resolve();
  const launcher = launchersBelow(host.platform.config.runDir);
  expect(launcher.length).toBeGreaterThan(0);
  for (const pid of [control, edge, ...launcher]) if (pid) process.kill(pid, 'SIGKILL');
  return died;
};

/** Members that are hard to get rid of: what they started has left its session, ignores what can be ignored, and holds files open. */
const stubborn = async (jobId: string, count: number, lives: object = {}): Promise<Sandbox[]> => {
  const boxes = await Promise.all(
    Array.from({ length: count }, () => dsec.runContainer({ image: 'small', job: jobId as never, memoryLimitMb: 32, diskLimitMb: 32, ...lives })),
  );
  await Promise.all(boxes.map((box) => box.start(`trap '' TERM HUP INT; setsid sh -c "trap '' TERM HUP; exec sleep 3000 > /w/open" & sleep 3000`)));
  return boxes;
};

const idsOf = async (jobId: string): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { id } of dsec.list({ labels: { 'dsec/job': jobId } })) ids.push(id);
  return ids;
};
const statusesOf = async (ids: readonly string[]) => new Set(await Promise.all(ids.map(async (id) => (await dsec.get(id)).status)));
const allEnded = async (ids: readonly string[]) => [...(await statusesOf(ids))].every((status) => status && ENDED_STATUSES.has(status));
const used = async () => (await dsec.admin.getProject()).used.sandboxes ?? 0;
const dataOf = (id: string) => join(host.dir, 'data/sandboxes', id);

test('those who come back end what the lost owner’s job has', async () => {
  const { state: job } = await dsec.jobs.create('lost-owner', { leaseMs: 3_000 as never, onOwnerLost: 'stop' });
  await dsec.jobs.startRollouts(
    job.id,
    [0, 1, 2].map((n) => scriptedRollout(`r-${n}`, 2)),
  );
  await stubborn(job.id, 4);
  let turns = 0;
  const program = join(projectRoot(), 'build/demo-trainer.mjs');
  const trainer = new TrainerChild(program, [host.platform.contextFile, job.id, join(host.dir, 'policy.json'), `${THINK_MS}`], ({ event }) => {
    if (event === 'turn') turns += 1;
  });
  await expect.poll(() => turns, PATIENCE).toBe(3);
  const ids = await idsOf(job.id);
  expect(ids).toHaveLength(10);
  expect(tracesOf(ids).length).toBeGreaterThan(ids.length);

  await killAll(trainer);
  await expect.poll(async () => (await dsec.jobs.get(job.id)).state, PATIENCE).toMatchObject({ status: 'ended', endReason: 'owner_lost', counts: { left: 0 } });
  await expect.poll(() => allEnded(ids), PATIENCE).toBe(true);
  await expect.poll(() => tracesOf(ids), PATIENCE).toEqual([]);
  for (const id of ids) for (const name of ['upper', 'disk.ext4']) expect(existsSync(join(dataOf(id), name)), `${id}/${name}`).toBe(false);
  await expect.poll(used, PATIENCE).toBe(0);
  for await (const { status } of dsec.jobs.rollouts(job.id)) expect(status).toBe('ended');
});

test('when nobody comes back, each ends itself at its total life; the next start finds nothing to live for', async () => {
  const { state: job } = await dsec.jobs.create('nobody', { lifeMs: 8_000 as never, leaseMs: 3_000 as never, onOwnerLost: 'keep' });
  const boxes = await stubborn(job.id, 3, { ttlTotal: 3_600 }); // the job's own life is shorter, and bounds theirs
  const ids = boxes.map(({ id }) => id);
  await killAll(null);
  await host.restart(async () => {
    expect(processesOf(ids).length).toBeGreaterThan(0);
    await expect.poll(() => processesOf(ids), PATIENCE).toEqual([]);
  });
  await dsec.close();
  dsec = await connect({ contextFile: host.platform.contextFile });
  await expect.poll(() => allEnded(ids), PATIENCE).toBe(true);
  await expect.poll(() => tracesOf(ids), PATIENCE).toEqual([]);
  await expect.poll(async () => (await dsec.jobs.get(job.id)).state, PATIENCE).toMatchObject({ status: 'ended', endReason: 'deadline' });
  await expect.poll(used, PATIENCE).toBe(0);
}, 400_000);
