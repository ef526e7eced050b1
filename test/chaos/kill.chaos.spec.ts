/** SIGKILL of each process of a running platform: no acknowledged work is lost, none is done twice, nothing stays behind. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findLeftovers, type NamespaceRecord, recordNamespaces } from '#infra/demo/leftovers.ts';
import { cgroupNameOf } from '#runtime/config.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

const BOXES = 8;
let host: TestPlatform;
let dsec: DsecClient;
let boxes: readonly Sandbox[];
let namespaces: NamespaceRecord;

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  boxes = (await dsec.runContainers({ image: 'small', memoryLimitMb: 64 }, { count: BOXES })).orThrow().sandboxes;
  namespaces = recordNamespaces(boxes.flatMap((box) => box.state?.pid ?? []));
  expect(namespaces.names).toHaveLength(BOXES);
});

const launcherPid = (): number => {
  const found = readdirSync('/proc').find((pid) => /^\d+$/.test(pid) && cmdline(pid).includes('dsec-launcher') && cmdline(pid).includes(host.dir));
  if (!found) throw new Error('no launcher runs');
  return Number(found);
};
const cmdline = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};

/** A command with a side effect that is counted, and whose output is long enough to be cut by a careless restart. */
const work = (box: Sandbox, key: string) =>
  box.runShell(`echo started >> /w/count-${key}; i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; echo end`, { key });

const expectExact = async (box: Sandbox, key: string, result: Awaited<ReturnType<typeof work>>) => {
  expect(result).toMatchObject({ exitCode: 0, reason: 'exited' });
  expect(result.stdout.split('\n')).toEqual([...Array.from({ length: 40 }, (_, i) => `line ${i}`), 'end', '']);
  expect((await box.runShell(`wc -l < /w/count-${key}`)).stdout.trim()).toBe('1');
};

const victims: [string, () => number | undefined][] = [
  ['Edge', () => host.platform.pids().edge],
  ['apiserver and placement', () => host.platform.pids().control],
  ['nats-server', () => host.platform.pids().bus],
  ['launcher', launcherPid],
];

test.each(victims)('kill -9 of the %s while commands run: outputs whole, each command once, new creates work', async (name, pidOf) => {
  const key = name.replaceAll(/[^a-zA-Z]/g, '');
  const running = boxes.map((box) => work(box, key));
  await boxes[0]?.runShell(`while [ ! -f /w/count-${key} ]; do sleep 0.02; done`);
  const pid = pidOf();
  expect(pid).toBeTypeOf('number');
  process.kill(pid as number, 'SIGKILL');
  const created = dsec.runContainer({ image: 'small', memoryLimitMb: 64, key: `after-${key}` });
  const results = await Promise.all(running);
  for (const [i, result] of results.entries()) await expectExact(boxes[i] as Sandbox, key, result);
  const fresh = await created;
  expect((await fresh.exec(['echo', 'alive'])).stdout).toBe('alive\n');
  expect((await dsec.runContainer({ image: 'small', memoryLimitMb: 64, key: `after-${key}` })).id).toBe(fresh.id);
  await fresh.stop();
});

test('creates in flight while the Edge is killed again and again: each key ends with one live sandbox', async () => {
  const keys = Array.from({ length: 24 }, (_, i) => `burst-${i}`);
  const creates = keys.map((key) => dsec.runContainer({ image: 'small', memoryLimitMb: 32, key }, { timeoutMs: 120_000 }));
  let edge = host.platform.pids().edge;
  for (let round = 0; round < 3; round += 1) {
    if (edge !== undefined) process.kill(edge, 'SIGKILL');
    const killed = edge;
    await expect.poll(() => host.platform.pids().edge, { timeout: 30_000, interval: 20 }).not.toBe(killed);
    edge = host.platform.pids().edge;
  }
  const made = await Promise.all(creates);
  expect(new Set(made.map((b) => b.id)).size).toBe(keys.length);
  const live: string[] = [];
  for await (const one of dsec.list({ status: 'running' })) live.push(one.id);
  expect(live.sort()).toEqual([...made, ...boxes].map((b) => b.id).sort());
  await Promise.all(made.map((b) => b.stop()));
});

test('after all of it the platform ends and leaves nothing', async () => {
  const owned = { cgroupName: cgroupNameOf(host.platform.config), dirs: [host.dir], namespaces };
  await dsec.close();
  await host.close();
  expect(findLeftovers(owned)).toEqual({ processes: [], mounts: [], cgroups: [], networkNamespaces: [], loopDevices: [], files: [] });
});
