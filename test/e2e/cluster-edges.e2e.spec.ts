/** Edges that hang, that die with what they had accepted, that are claimed twice; and the operator who empties one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { Beat } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import { beatSubject, edgeCommandSubject } from '#bus/subjects.ts';
import { shardsOf } from '#runtime/config.ts';
import { cordonNode, drainNode, listNodes, uncordonNode } from '#runtime/nodes/nodes.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { FromRole, ToRole } from '#runtime/roles/supervision.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { statesOf } from '#test/helpers/chaos/audit.ts';
import type { TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';
import { createOn, edgeOf, operate as operateOn } from '#test/helpers/nodes.ts';

const LEASE_MS = 10_000;
const PATIENCE = { timeout: 60_000, interval: 100 };
const ONE = 'edge-1' as EdgeName;
const TWO = 'edge-2' as EdgeName;

let host: TestCluster;
let dsec: DsecClient;
givenCluster({ edges: 2, overrides: { leaseMs: LEASE_MS } }, (given) => {
  ({ host, dsec } = given);
});

const signal = (name: string, what: NodeJS.Signals): void => void process.kill(host.cluster.member(name).pid() as number, what);
const logOf = (member: string): string => readFileSync(join(host.dir, member, 'log'), 'utf8');
const operate = <T>(work: Parameters<typeof operateOn<T>>[1]): Promise<T> => operateOn(host.cluster, work);
/** Both Edges are heard, active, and not suspect. */
const bothWork = (): Promise<void> =>
  vi.waitFor(async () => {
    const nodes = await operate(listNodes);
    expect(nodes.map(({ name, status }) => ({ name, status }))).toEqual([ONE, TWO].map((name) => ({ name, status: 'active' })));
    for (const { conditions } of nodes) expect(conditions).not.toContain('silent');
  }, PATIENCE);
/** Whether the node's own beats say so, which is what placements hear. */
const isCordoned = (edge: EdgeName): Promise<boolean> =>
  operate(async ({ connection }) => {
    const beats = connection.subscribe(beatSubject(edge), { max: 1 });
    for await (const message of beats) return Beat.parse(message.json()).cordoned !== null;
    return false;
  });
const someOnBoth = async (): Promise<readonly Sandbox[]> => [...(await createOn(host.cluster, dsec, ONE, 4)), ...(await createOn(host.cluster, dsec, TWO, 4))];
beforeEach(bothWork, PATIENCE.timeout + 5_000);

test('a command for a node that does not answer waits for it', async () => {
  const sandboxes = await someOnBoth();
  const box = sandboxes.find((one) => edgeOf(one) === ONE) as Sandbox;
  signal(ONE, 'SIGSTOP');
  await box.stop({ wait: false });
  expect((await dsec.get(box.id)).status).toBe('running');
  signal(ONE, 'SIGCONT');
  await vi.waitFor(async () => expect((await dsec.get(box.id)).status).toBe('stopped'), PATIENCE);
  await Promise.all(sandboxes.map((one) => one.stop()));
});

test('creates that a node was given and never took go to another, once', { timeout: 150_000 }, async () => {
  await operate((o) => cordonNode(o, TWO, 'for a test'));
  await vi.waitFor(async () => expect(await isCordoned(TWO)).toBe(true), PATIENCE);
  signal(ONE, 'SIGSTOP');
  const creating = dsec.runContainers({ image: 'small', memoryLimitMb: 16, labels: { test: 'taken-back' } }, { count: 8, timeoutMs: 90_000 });
  try {
    const given = () => operate(({ jetStream }) => jetStream.commandQueue.waiting(edgeCommandSubject(ONE, '_'), 0, 1));
    await vi.waitFor(async () => expect(await given()).toHaveLength(1), PATIENCE);
    await operate((o) => uncordonNode(o, TWO));
    const { sandboxes, failures } = await creating;
    expect(failures).toEqual([]);
    expect(sandboxes.map(edgeOf)).toEqual(Array.from({ length: 8 }, () => TWO));
  } finally {
    signal(ONE, 'SIGCONT');
  }
  const { sandboxes } = await creating;
  await vi.waitFor(() => expect(logOf(ONE)).toContain('edge.lost'), PATIENCE);
  await bothWork();
  // The messages that had waited are refused by the new generation: nothing was made twice.
  const states = [...(await statesOf(host.cluster)).values()].filter(({ spec }) => spec.labels['test'] === 'taken-back');
  expect(states.map(({ id }) => id).sort()).toEqual(sandboxes.map(({ id }) => id).sort());
  await Promise.all(sandboxes.map((one) => one.stop()));
});

test('a node that dies with what it had accepted finishes it when it is back', { timeout: 120_000 }, async () => {
  await operate((o) => cordonNode(o, TWO, 'for a test'));
  await vi.waitFor(async () => expect(await isCordoned(TWO)).toBe(true), PATIENCE);
  const creating = dsec.runContainers({ image: 'small', memoryLimitMb: 16 }, { count: 32, timeoutMs: 90_000 });
  await vi.waitFor(async () => {
    const taken = [...(await statesOf(host.cluster)).values()].filter(({ edge, status }) => edge === ONE && ['starting', 'running'].includes(status));
    expect(taken.length).toBeGreaterThan(0);
  }, PATIENCE);
  signal(ONE, 'SIGKILL');
  await operate((o) => uncordonNode(o, TWO));
  const { sandboxes, failures } = await creating;
  expect(failures).toEqual([]);
  const answers = await Promise.all(sandboxes.map((one) => one.exec(['echo', 'alive'])));
  expect(answers.every(({ stdout }) => stdout === 'alive\n')).toBe(true);
  await Promise.all(sandboxes.map((one) => one.stop()));
});

test('a cordoned node keeps what it has and gets nothing new; drained it is empty; a restart does not forget it', { timeout: 120_000 }, async () => {
  const sandboxes = await someOnBoth();
  expect(await operate((o) => cordonNode(o, ONE, 'for a test'))).toBe('done');
  expect(await operate((o) => cordonNode(o, ONE, 'again'))).toBe('as before');
  await vi.waitFor(async () => expect((await operate(listNodes))[0]).toMatchObject({ name: ONE, cordoned: 'for a test' }), PATIENCE);
  const more = await dsec.runContainers({ image: 'small' }, { count: 8 });
  expect(new Set(more.sandboxes.map(edgeOf))).toEqual(new Set([TWO]));

  const before = host.cluster.member(ONE).pid();
  signal(ONE, 'SIGKILL');
  await vi.waitFor(() => expect(host.cluster.member(ONE).pid()).not.toBe(before), PATIENCE);
  await bothWork();
  expect((await operate(listNodes))[0]).toMatchObject({ name: ONE, cordoned: 'for a test' });

  const left: number[] = [];
  const shards = shardsOf(host.cluster.configOf(ONE));
  const drain = (stopAfterMs: number | null, until: AbortSignal) =>
    operate((o) => drainNode(o, { edge: ONE, shards, reason: 'for a test', stopAfterMs, signal: until, onProgress: (n) => left.push(n) }));
  await expect(drain(null, AbortSignal.timeout(2_000))).rejects.toMatchObject({ code: 'CANCELLED', message: expect.stringContaining('stays cordoned') });
  await drain(0, new AbortController().signal);
  expect(left[0]).toBe(sandboxes.filter((one) => edgeOf(one) === ONE).length);
  expect(left.at(-1)).toBe(0);
  for (const one of sandboxes) expect((await dsec.get(one.id)).status).toBe(edgeOf(one) === ONE ? 'stopped' : 'running');
  expect(await operate((o) => uncordonNode(o, ONE))).toBe('done');
  await Promise.all([...sandboxes, ...more.sandboxes].map((one) => one.stop()));
});

test('of two that claim one name the older ends, and is not started again', { timeout: 120_000 }, async () => {
  const dir = join(host.dir, 'intruder');
  const config = { ...host.cluster.configOf(TWO), dataDir: join(dir, 'data'), runDir: join(dir, 'run') };
  for (const made of [config.dataDir, config.runDir]) mkdirSync(made, { recursive: true });
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const older = host.cluster.member(TWO).pid() as number;
  const intruder = await startEdge(join(dir, 'config.json'));
  try {
    await vi.waitFor(() => expect(logOf(TWO)).toContain('edge.superseded'), PATIENCE);
    await vi.waitFor(() => expect(() => process.kill(older, 0)).toThrow(/ESRCH/), PATIENCE);
    await vi.waitFor(async () => expect((await operate(listNodes))[1]?.conditions).not.toContain('silent'), PATIENCE);
    expect(host.cluster.member(TWO).pid()).toBe(older);
  } finally {
    await drained(intruder);
    await drained(await startEdge(join(host.dir, TWO, 'config.json'))); // its launcher is still there, and nobody's
  }
});

/** An Edge that no supervisor of the cluster knows. */
const startEdge = async (configFile: string): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), 'edge', '--config', configFile], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const [message] = (await once(child, 'message')) as [FromRole];
  expect(message).toEqual({ type: 'ready' });
  return child;
};
const drained = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, 'exit');
  child.send({ type: 'drain' } satisfies ToRole);
  expect((await ended)[0]).toBe(0);
};
