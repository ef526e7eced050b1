/** Groups on three copies of everything, while placements and servers of the bus are killed: whole, once. Nodes keep records only. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type DsecClient } from '#sdk/mod.ts';
import { startTestCluster, type TestCluster } from '#test/helpers/cluster.ts';

const EDGES = 3;
/** A server that has just been killed elects and catches up before the next one dies: two at a time would be the loss of the quorum. */
const BETWEEN_SERVERS_MS = 15_000;
const BETWEEN_PLACEMENTS_MS = 3_000;

let host: TestCluster;
let dsec: DsecClient;
beforeAll(async () => {
  host = await startTestCluster({ edges: EDGES, overrides: { backend: 'null', logLevel: 'warn' } });
  dsec = await connect({ contextFile: host.cluster.contextFile });
});
afterAll(async () => {
  await dsec?.close();
  await host?.close();
});

const live = async (): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { id } of dsec.list({ status: ['admitted', 'preparing', 'starting', 'running'], pageSize: 500 })) ids.push(id);
  return ids.sort();
};

type Killed = { placement: number; bus: number };
/** One of a kind dies at once, and another after each pause, until the work is done. */
const killing = async <T>(work: Promise<T>): Promise<{ value: T; killed: Killed }> => {
  const killed: Killed = { placement: 0, bus: 0 };
  const { members } = host.cluster;
  const strike = (kind: keyof Killed): void => {
    const some = members.filter((member) => member.kind === kind);
    const pid = some[Math.floor(Math.random() * some.length)]?.pid();
    if (pid === undefined) return; // it is being started
    try {
      process.kill(pid, 'SIGKILL');
      killed[kind] += 1;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown; // it had ended a moment ago
    }
  };
  const timers = [setInterval(() => strike('placement'), BETWEEN_PLACEMENTS_MS), setInterval(() => strike('bus'), BETWEEN_SERVERS_MS)];
  try {
    strike('bus');
    strike('placement');
    return { value: await work, killed };
  } finally {
    for (const timer of timers) clearInterval(timer);
  }
};

test('as many as fit: each once, and the same again under the same key', { timeout: 300_000 }, async () => {
  const options = { image: 'small', memoryLimitMb: 16, key: 'burst' };
  const { value: group, killed } = await killing(dsec.runContainers(options, { count: 600, timeoutMs: 200_000 }));
  expect(killed.placement).toBeGreaterThan(0);
  expect(killed.bus).toBeGreaterThan(0);
  expect(group.failures).toEqual([]);
  const ids = group.sandboxes.map(({ id }) => id);
  expect(new Set(ids).size).toBe(600);
  await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual([...ids].sort());
  const again = await dsec.runContainers(options, { count: 600, timeoutMs: 60_000 });
  expect(again.sandboxes.map(({ id }) => id)).toEqual(ids);
  await group.stopAll();
});

test('all or nothing: what fits runs whole', { timeout: 300_000 }, async () => {
  const { value: group } = await killing(
    dsec.runContainers({ image: 'small', memoryLimitMb: 16, key: 'whole' }, { count: 400, mode: 'allOrNothing', timeoutMs: 200_000 }),
  );
  expect(group.failures).toEqual([]);
  await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual(group.sandboxes.map(({ id }) => id).sort());
  await group.stopAll();
});
