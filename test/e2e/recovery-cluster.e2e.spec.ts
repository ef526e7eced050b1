/**
 * A node that is really lost: its cable pulled, its Edge, launcher and sandboxes killed with SIGKILL, its files gone. What it ran goes on
 * on another node, from the newest snapshot in a layer store off the node and from the record of its commands, and the caller sees which
 * of them were answered from there.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { EdgeName } from '#bus/ids.ts';
import { pathsOf } from '#runtime/config.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { putSmallLayer, type TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';
import { inside } from '#test/helpers/files.ts';
import { launchersBelow, processesOf } from '#test/helpers/kernel-traces.ts';
import { edgeOf } from '#test/helpers/nodes.ts';

const PATIENCE = { timeout: 90_000, interval: 200 };

let host: TestCluster;
let dsec: DsecClient;
givenCluster(
  {
    edges: 3,
    busServers: 1,
    instances: 1,
    overrides: { leaseMs: 3_000, layerStore: { type: 'object', bucket: 'layers' } },
  },
  async (given) => {
    ({ host, dsec } = given);
    await putSmallLayer(host);
  },
);

/** Says something, and leaves a mark of having run. */
const step = (box: Sandbox, n: number) => box.runShell(`echo ran-${n} | tee -a /w/ran; exit ${n}`, { key: `step-${n}` });
const ranIn = (box: Sandbox): Promise<string> => inside(box, 'cat /w/ran');

const loseNode = async (edge: EdgeName, ids: readonly string[]): Promise<void> => {
  await host.cluster.setLink(edge, false); // whatever is started again there reaches nobody
  const config = host.cluster.configOf(edge);
  const killed = [host.cluster.member(edge).pid() as number, ...launchersBelow(config.runDir), ...processesOf(ids)];
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  await expect.poll(() => processesOf(ids), PATIENCE).toEqual([]);
  for (const id of ids) rmSync(join(pathsOf(config).sandboxes, id), { recursive: true, force: true });
};

test('its sandboxes go on on other nodes, from their snapshots and the record of their commands', { timeout: 300_000 }, async () => {
  const made = await Promise.all(
    Array.from({ length: 6 }, () => dsec.runContainer({ image: 'small', memoryLimitMb: 32, recordCommands: true }, { timeoutMs: 60_000 })),
  );
  const victim = edgeOf(made[0] as Sandbox);
  const lost = made.filter((box) => edgeOf(box) === victim);
  const kept = made.filter((box) => edgeOf(box) !== victim);
  expect(kept.length).toBeGreaterThan(0);
  const snapshots = new Map<string, string>();
  for (const box of lost) {
    for (const n of [0, 1]) await step(box, n);
    snapshots.set(box.id, (await box.snapshot()).snapshotId);
    for (const n of [2, 3]) await step(box, n);
  }

  await loseNode(
    victim,
    lost.map(({ id }) => id),
  );
  for (const box of lost) {
    await expect.poll(async () => (await dsec.get(box.id)).state?.failure?.code, PATIENCE).toBe('SANDBOX_LOST');
    const next = await dsec.recover(box.id, { timeoutMs: 60_000 });
    expect(edgeOf(next)).not.toBe(victim);
    expect((await next.refresh()).spec.recoveredFrom).toMatchObject({ sandbox: box.id, snapshot: { id: snapshots.get(box.id) } });
    // Whoever drives it begins again: what was recorded is answered, and says so, and nothing of it runs a second time.
    const again = [];
    for (const n of [0, 1, 2, 3, 4]) again.push(await step(next, n));
    expect(again.map(({ replayed, exitCode, stdout }) => [replayed, exitCode, stdout])).toEqual([0, 1, 2, 3, 4].map((n) => [n < 4, n, `ran-${n}\n`]));
    expect(await ranIn(next)).toBe('ran-0\nran-1\nran-4\n'); // the first two are the snapshot's
    await next.stop();
  }
  for (const box of kept) expect((await box.runShell('echo here')).stdout).toBe('here\n');

  // The host comes back: a new generation, which knows that it has nothing left of them.
  await host.cluster.setLink(victim, true);
  await expect.poll(async () => (await dsec.admin.getProject()).used.sandboxes, PATIENCE).toBe(kept.length);
  await Promise.all(kept.map((box) => box.stop()));
});
