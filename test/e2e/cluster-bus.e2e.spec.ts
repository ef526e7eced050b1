/** The bus of a cluster under its clients: servers rolled, all of them killed, hosts with other clocks, keys through two apiservers. */
import { describe, expect, test, vi } from 'vitest';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { statesOf } from '#test/helpers/chaos/audit.ts';
import type { TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';

const PATIENCE = { timeout: 60_000, interval: 100 };
/** Clocks of the two nodes, of one apiserver, watcher and placement and of both iam: half a minute apart from the others, or a whole one. */
const SKEW_MS = 30_000;

let host: TestCluster;
let dsec: DsecClient;
let box: Sandbox;

const overridesOf = {
  'edge-1': { clockOffsetMs: SKEW_MS },
  'edge-2': { clockOffsetMs: -SKEW_MS },
  'apiserver-1': { clockOffsetMs: SKEW_MS },
  'watcher-1': { clockOffsetMs: -SKEW_MS },
  'placement-1': { clockOffsetMs: SKEW_MS },
  'iam-1': { clockOffsetMs: SKEW_MS },
  'iam-2': { clockOffsetMs: -SKEW_MS },
};
givenCluster({ edges: 2, overrides: { leaseMs: 10_000 }, overridesOf }, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small' });
});

/** Creates, uses and stops sandboxes while `during` goes on; every one of them must succeed. */
const workDuring = async (tag: string, during: () => Promise<void>): Promise<number> => {
  let over = false;
  let done = 0;
  const work = async (worker: number): Promise<void> => {
    for (let n = 0; !over || n === 0; n += 1) {
      const key = `${tag}-${worker}-${n}`;
      const sandbox = await dsec.runContainer({ image: 'small', memoryLimitMb: 32, key }, { timeoutMs: 150_000 });
      const { exitCode, stdout } = await sandbox.exec(['sh', '-c', `echo ${key} >> /w/f; cat /w/f`], { key });
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${key}\n` });
      await sandbox.stop({ timeoutMs: 150_000 });
      done += 1;
    }
  };
  const workers = Promise.all([work(0), work(1)]);
  workers.catch(() => {});
  await during();
  over = true;
  await workers;
  return done;
};

describe('the bus', () => {
  test('lame duck and restart of every server, one after another, lose no request', { timeout: 300_000 }, async () => {
    const pids = host.cluster.members.filter(({ kind }) => kind === 'bus').map(({ pid }) => pid());
    const done = await workDuring('roll', async () => {
      for (const name of ['nats-1', 'nats-2', 'nats-3']) await host.cluster.rollBus(name);
    });
    expect(done).toBeGreaterThan(2);
    for (const [i, { pid }] of host.cluster.members.filter(({ kind }) => kind === 'bus').entries()) expect(pid()).not.toBe(pids[i]);
  });

  test('all three servers killed at once: what was under way is finished when they are back', { timeout: 300_000 }, async () => {
    const running = box.exec(['sh', '-c', 'sleep 3; echo still here']);
    const done = await workDuring('dead', async () => {
      for (const { kind, pid } of host.cluster.members) if (kind === 'bus') process.kill(pid() as number, 'SIGKILL');
    });
    expect(done).toBeGreaterThan(0);
    expect((await running).stdout).toBe('still here\n');
  });
});

describe('clocks half a minute apart', () => {
  test('nobody is declared lost, and both nodes get work', async () => {
    await vi.waitFor(async () => {
      const { sandboxes } = await dsec.runContainers({ image: 'small', memoryLimitMb: 32 }, { count: 8 });
      const edges = new Set(sandboxes.map(({ id }) => id.split('-').slice(3).join('-')));
      await Promise.all(sandboxes.map((sandbox) => sandbox.stop()));
      expect([...edges].sort()).toEqual(['edge-1', 'edge-2']);
    }, PATIENCE);
    const states = [...(await statesOf(host.cluster)).values()];
    expect(states.filter(({ generation }) => generation > 1)).toEqual([]);
    expect(states.filter(({ failure }) => failure !== null)).toEqual([]);
  });
});

test('one key through many connections and both apiservers is one sandbox', async () => {
  const clients = await Promise.all(Array.from({ length: 4 }, () => connect({ contextFile: host.cluster.contextFile })));
  const made = await Promise.all(clients.map((client) => client.runContainer({ image: 'small', key: 'the-same' })));
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  const [one] = made;
  const same = [...(await statesOf(host.cluster)).values()].filter(({ requestId }) => requestId === one?.state?.requestId);
  expect(same).toHaveLength(1);
  await one?.stop();
  await Promise.all(clients.map((client) => client.close()));
});
