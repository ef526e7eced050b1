/** Groups on three copies of everything, while placements, apiservers and servers of the bus are killed: whole, once. Nodes keep records only. */
import { afterEach, expect, test, vi } from 'vitest';
import { connect, type DsecClient } from '#sdk/mod.ts';
import type { Member } from '#infra/cluster/cluster.ts';
import { runKiller } from '#test/helpers/chaos/killer.ts';
import { readOps } from '#test/helpers/ops.ts';
import type { TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';

const EDGES = 3;
/** Room for every group here but the one that is to find none. */
const NODE_MIB = 65_536;
const PAUSE_MS = [1_000, 3_000] as const;

let host: TestCluster;
let dsec: DsecClient;
givenCluster({ edges: EDGES, overrides: { backend: 'null', logLevel: 'warn', memoryMiB: NODE_MIB } }, (given) => {
  ({ host, dsec } = given);
});

/** One test that fails must not make the others fail. */
afterEach(async () => {
  await Promise.all((await live()).map((id) => dsec.sandbox(id).stop({ timeoutMs: 60_000 })));
}, 120_000);

const live = async (): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { id } of dsec.list({ status: ['admitted', 'preparing', 'starting', 'running'], pageSize: 500 })) ids.push(id);
  return ids.sort();
};

const KINDS = ['bus', 'placement', 'apiserver'] as const;
/** One of each kind dies at once, while all of them are there; then one after another, none before it is back, until the work is done. */
const killing = async <T>(work: Promise<T>): Promise<{ value: T; killed: readonly string[] }> => {
  const { members } = host.cluster;
  const killed: string[] = [];
  for (const kind of KINDS) {
    const some = members.filter((member) => member.kind === kind);
    const victim = some[Math.floor(Math.random() * some.length)];
    const pid = victim?.pid();
    if (!victim || pid === undefined) throw new Error(`no ${kind} to kill`);
    process.kill(pid, 'SIGKILL');
    killed.push(victim.name);
  }
  let over = false;
  const killer = runKiller({ cluster: host.cluster, kinds: KINDS, everyMs: PAUSE_MS, until: () => over, isReady, onKill: (name) => killed.push(name) });
  try {
    return { value: await work, killed };
  } finally {
    over = true;
    await killer;
    await allBack();
  }
};

/** A role says it itself; of a server it is enough that it runs. */
const isReady = async ({ kind, name, pid }: Member): Promise<boolean> => {
  if (pid() === undefined) return false;
  if (kind === 'bus') return true;
  try {
    return (await readOps(host.cluster.configOf(name).runDir).json('/readyz')).status === 200;
  } catch {
    return false; // it is being started
  }
};

/** Edges stay out of it: they live, and listen in networks of their own. */
const mortal = (): readonly Member[] => host.cluster.members.filter(({ kind }) => (KINDS as readonly string[]).includes(kind));

/** The next test kills of what is there. */
const allBack = (): Promise<void> =>
  vi.waitFor(
    async () => {
      for (const member of mortal()) if (!(await isReady(member))) throw new Error(`${member.name} is away`);
    },
    { timeout: 120_000, interval: 500 },
  );

test('as many as fit: each once, and the same again under the same key', { timeout: 300_000 }, async () => {
  const options = { image: 'small', memoryLimitMb: 16, key: 'burst' };
  const { value: group, killed } = await killing(dsec.runContainers(options, { count: 600, timeoutMs: 200_000 }));
  expect(killed.length).toBeGreaterThanOrEqual(KINDS.length);
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

/** One full chunk, and one item more than that: a request of its own kind, and a parent of two. */
test.each([
  [256, 'asManyAsFit'],
  [257, 'asManyAsFit'],
  [256, 'allOrNothing'],
  [257, 'allOrNothing'],
] as const)('%i, %s, and a second client that joins through another apiserver with the same key', { timeout: 300_000 }, async (count, mode) => {
  const options = { image: 'small', memoryLimitMb: 16, key: `edge-of-a-chunk-${count}-${mode}` };
  const late = await connect({ contextFile: host.cluster.contextFile });
  try {
    const wait = { count, mode, timeoutMs: 200_000 };
    const { value } = await killing(Promise.all([dsec.runContainers(options, wait), late.runContainers(options, wait)]));
    const [first, second] = value.map(({ sandboxes, failures }) => ({ ids: sandboxes.map(({ id }) => id), failures }));
    expect(first?.failures).toEqual([]);
    expect(new Set(first?.ids).size).toBe(count);
    expect(second).toEqual(first);
    await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual([...(first?.ids ?? [])].sort());
    await value[0].stopAll();
    await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual([]);
  } finally {
    await late.close();
  }
});

test('all or nothing, more than there is room for: nothing stays, and the key says so again', { timeout: 300_000 }, async () => {
  const options = { image: 'small', memoryLimitMb: (EDGES * NODE_MIB) / 256, key: 'too-much' };
  const { value } = await killing(
    dsec.runContainers(options, { count: 300, mode: 'allOrNothing', timeoutMs: 200_000 }).then(
      () => 'made',
      (thrown: { code: string }) => thrown.code,
    ),
  );
  expect(value).toBe('NO_CAPACITY');
  await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual([]);
  await expect(dsec.runContainers(options, { count: 300, mode: 'allOrNothing', timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'NO_CAPACITY' });
});
