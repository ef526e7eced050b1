/** Groups on a fleet without processes, their placements killed at any moment: whole, once, evenly spread; all or nothing. */
import { expect, test } from 'vitest';
import { parseSandboxId } from '#bus/ids.ts';
import type { DsecClient, Group } from '#sdk/mod.ts';
import type { ControlPlane } from '#test/helpers/control-plane.ts';
import { givenControlPlane } from '#test/helpers/given.ts';
import { errorOf } from '#test/helpers/edge-kills.ts';

const EDGES = 4;
const PER_EDGE = 300;
let plane: ControlPlane;
let dsec: DsecClient;

givenControlPlane(
  {
    control: [['apiserver', 'iam', 'watcher'], ['placement'], ['placement'], ['apiserver']],
    fleet: [EDGES / 2, EDGES / 2],
    shards: 2,
    overrides: { maxSandboxes: PER_EDGE },
  },
  (given) => {
    ({ host: plane, dsec } = given);
  },
);

const live = async (): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { id } of dsec.list({ status: ['admitted', 'preparing', 'starting', 'running'], pageSize: 500 })) ids.push(id);
  return ids.sort();
};
const perEdge = (group: Group): number[] => {
  const counts = new Map<string, number>();
  for (const { id } of group.sandboxes) counts.set(parseSandboxId(id).edge, (counts.get(parseSandboxId(id).edge) ?? 0) + 1);
  return [...counts.values()];
};
/** The process may have ended by itself a moment ago. */
const killNow = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown;
  }
};
/** A random placement dies, again and again, until the work is done; in between there is time for one to start. */
const killing = async <T>(work: Promise<T>): Promise<T> => {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  const kill = async (): Promise<void> => {
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 3_000));
      const victim = plane.control[1 + Math.floor(Math.random() * 2)]?.pid;
      if (!done && victim) killNow(victim);
    }
  };
  await Promise.all([ended.catch(() => {}), kill()]);
  return ended;
};

test('1,200 in one request while placements are killed: each once, evenly spread, and the same again under the same key', async () => {
  const options = { image: 'small', memoryLimitMb: 16, key: 'burst' };
  const group = await killing(dsec.runContainers(options, { count: 1_200, timeoutMs: 120_000 }));
  expect(group.failures).toEqual([]);
  const ids = group.sandboxes.map(({ id }) => id);
  expect(new Set(ids).size).toBe(1_200);
  expect(await live()).toEqual([...ids].sort());
  expect(perEdge(group)).toHaveLength(EDGES);
  const again = await dsec.runContainers(options, { count: 1_200 });
  expect(again.sandboxes.map(({ id }) => id)).toEqual(ids);
  expect((await errorOf(dsec.runContainers(options, { count: 1_199 })))?.code).toBe('KEY_CONFLICT');
  await group.stopAll();
});

test('all or nothing: what fits runs whole, also when placements die in between', async () => {
  const group = await killing(
    dsec.runContainers({ image: 'small', memoryLimitMb: 16, key: 'whole' }, { count: 900, mode: 'allOrNothing', timeoutMs: 120_000 }),
  );
  expect(group.failures).toEqual([]);
  expect(await live()).toEqual(group.sandboxes.map(({ id }) => id).sort());
  await group.stopAll();
});

test('all or nothing: of what does not fit nothing ever runs, and nothing stays', async () => {
  const tooMany = EDGES * PER_EDGE + 1;
  const started: string[] = [];
  const watching = new AbortController();
  const watch = (async () => {
    for await (const { state } of dsec.watch({ signal: watching.signal })) if (state?.status === 'running') started.push(state.id);
  })().catch(() => {});
  const error = await errorOf(
    killing(dsec.runContainers({ image: 'small', memoryLimitMb: 16, key: 'too-much' }, { count: tooMany, mode: 'allOrNothing', timeoutMs: 120_000 })),
  );
  expect(error?.code).toBe('NO_CAPACITY');
  await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual([]);
  expect(started).toEqual([]);
  watching.abort();
  await watch;
});

test('as many as fit: the rest says that there is no capacity', async () => {
  const group = await dsec.runContainers({ image: 'small', memoryLimitMb: 16 }, { count: EDGES * PER_EDGE + 100, timeoutMs: 120_000 });
  expect(group.sandboxes).toHaveLength(EDGES * PER_EDGE);
  expect(new Set(group.failures.map(({ error }) => error.code))).toEqual(new Set(['NO_CAPACITY']));
  await group.stopAll();
});

test('one key through two apiservers at once gives one answer', async () => {
  const other = await plane.connect();
  const options = { image: 'small', memoryLimitMb: 16, key: 'twice' };
  const both = Array.from({ length: 8 }, (_, n) => (n % 2 ? dsec : other).runContainers(options, { count: 300 })); // the queue group gives each to either
  const [a, ...others] = (await Promise.all(both)) as [Group, ...Group[]];
  for (const b of others) expect(b.sandboxes.map(({ id }) => id)).toEqual(a.sandboxes.map(({ id }) => id));
  await expect.poll(async () => (await live()).length, { timeout: 10_000 }).toBe(300); // either apiserver’s list may be a moment behind
  await a.stopAll();
  await other.close();
});
