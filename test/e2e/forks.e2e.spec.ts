/** Forks: sandboxes that begin where a live one is, once per key, and what they share goes with the last of them. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import { createLog } from '#runtime/log/log.ts';
import { sweepForks } from '#runtime/snapshots/fork-sweep.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { inside } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

let host: TestPlatform;
let dsec: DsecClient;
let origin: Sandbox;

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  origin = await dsec.runContainer({ image: 'small', memoryLimitMb: 64, labels: { job: 'tree' }, env: { WHO: 'origin' }, hostname: 'origin' });
  await inside(origin, 'echo start > /w/state; dd if=/dev/urandom of=/w/large bs=1M count=8 2>/dev/null; rm -r /var');
});

const volatileLayers = async (): Promise<number> => (await host.store.list()).filter((layer) => layer.volatile).length;
/** What the Edge's own sweep does, without its patience. */
const sweep = async (): Promise<number> => {
  const live = new Set<string>();
  for await (const box of dsec.list({ status: ['running', 'paused', 'snapshotting', 'starting'] }))
    for (const layer of box.state?.spec.layers ?? []) live.add(layer);
  return sweepForks({ store: host.store, liveLayers: async () => live as never, clock: systemClock, log: createLog('test', 'error'), graceMs: 0 });
};

test('each has its files, an identity of its own and its origin; what one writes, no other sees', async () => {
  const group = await origin.fork(6, { env: { WHO: 'fork' }, memoryLimitMb: 48 });
  expect(group.failures).toEqual([]);
  const forks = group.sandboxes;
  expect(new Set(forks.map(({ id }) => id)).size).toBe(6);
  const sum = await inside(origin, 'md5sum /w/large');
  await Promise.all(
    forks.map(async (fork, i) => {
      expect(await inside(fork, `md5sum /w/large; cat /w/state; ls -d /var 2>/dev/null; echo ${i} >> /w/state; hostname; echo $WHO`)).toBe(
        `${sum}start\norigin\nfork\n`,
      );
    }),
  );
  expect(await Promise.all(forks.map((fork) => inside(fork, 'tail -n 1 /w/state')))).toEqual(['0\n', '1\n', '2\n', '3\n', '4\n', '5\n']);
  expect(await inside(origin, 'cat /w/state; echo $WHO')).toBe('start\norigin\n');
  const state = await (forks[0] as Sandbox).refresh();
  expect([state.forkedFrom, state.spec.labels, state.spec.limits.memoryMiB]).toEqual([origin.id, { job: 'tree' }, 48]);
  await group.stopAll();
});

test('forks of forks: each generation stands on the ones before', async () => {
  let last = origin;
  for (let depth = 0; depth < 4; depth += 1) {
    await inside(last, `echo ${depth} > /w/depth-${depth}; rm -f /w/depth-${depth - 2}`);
    const [next] = (await last.fork(1)).sandboxes;
    if (last !== origin) await last.stop();
    last = next as Sandbox;
  }
  expect(await inside(last, 'ls /w')).toBe('depth-2\ndepth-3\nlarge\nstate\n');
  const kept = await last.snapshot({ snapshotId: 'deep' });
  await last.stop();
  await sweep();
  await using copy = await dsec.runContainer({ image: { snapshot: kept.snapshotId } });
  expect(await inside(copy, 'ls /w')).toBe('depth-2\ndepth-3\nlarge\nstate\n');
});

describe('once per key', () => {
  test('the same call answers with the same forks, also when the origin has gone on or ended', async () => {
    const base = (await origin.fork(1)).sandboxes[0] as Sandbox;
    const first = await base.fork(3, { key: 'once' as never });
    await inside(base, 'echo later > /w/state');
    const ids = first.sandboxes.map(({ id }) => id);
    expect((await base.fork(3, { key: 'once' as never })).sandboxes.map(({ id }) => id)).toEqual(ids);
    await base.stop();
    expect((await base.fork(3, { key: 'once' as never })).sandboxes.map(({ id }) => id)).toEqual(ids);
    expect((await refusal(base.fork(1))).code).toBe('SANDBOX_ENDED');
    await first.stopAll();
  });

  test.each([0, 257, 1.5])('%s forks are refused', async (count) => {
    expect((await refusal(origin.fork(count))).code).toBe('INVALID_ARGUMENT');
  });
});

test('what forks share goes when the last has ended, and not before', async () => {
  await sweep();
  const before = await volatileLayers();
  await inside(origin, 'echo unique > /w/state');
  const group = await origin.fork(2);
  expect(await volatileLayers()).toBeGreaterThan(before);
  await (group.sandboxes[0] as Sandbox).stop();
  await sweep();
  expect(await inside(group.sandboxes[1] as Sandbox, 'cat /w/state')).toBe('unique\n');
  expect(await volatileLayers()).toBeGreaterThan(before);
  await (group.sandboxes[1] as Sandbox).stop();
  await sweep();
  expect(await volatileLayers()).toBe(before);
});
