/**
 * Layers in the bus' object store: two Edges that share no directory, each with copies of its own. What one has stored the other can
 * start from; a bus that dies meanwhile delays it; a full cache makes room.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { pathsOf } from '#runtime/config.ts';
import type { DsecClient, RunOptions, Sandbox } from '#sdk/mod.ts';
import { putSmallLayer, type TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';
import { inside } from '#test/helpers/files.ts';
import { edgeOf } from '#test/helpers/nodes.ts';

const MIB = 1024 * 1024;
/** Small enough that two of the large snapshots below do not fit. */
const CACHE_MIB = 150;
const LARGE_MIB = 80;
const PATIENCE = { timeout: 60_000, interval: 20 };

let host: TestCluster;
let dsec: DsecClient;
givenCluster(
  {
    edges: 2,
    busServers: 1,
    instances: 1,
    overrides: { layerStore: { type: 'object', bucket: 'layers' } },
    overridesOf: { 'edge-1': { nodeLabels: { node: 'one' } }, 'edge-2': { nodeLabels: { node: 'two' }, layerCacheMiB: CACHE_MIB } },
  },
  async (given) => {
    ({ host, dsec } = given);
    await putSmallLayer(host);
  },
);

/** One line for each thing below a directory; sizes of directories are a file system's own business. */
const MANIFEST = `find . -mindepth 1 -exec busybox stat -c '%n|%F|%a|%u:%g|%h|%N|%y' {} + | sort`;

const on = (node: 'one' | 'two', image: RunOptions['image']): Promise<Sandbox> =>
  dsec.runContainer({ image, memoryLimitMb: 64, require: { node } }, { timeoutMs: 120_000 });
const logOf = (member: string): string => readFileSync(join(host.dir, member, 'log'), 'utf8');
/** Resolves when the member's log holds the text once more than it did. */
const logged = async (member: string, text: string): Promise<void> => {
  const before = logOf(member).split(text).length;
  await vi.waitFor(() => expect(logOf(member).split(text).length).toBeGreaterThan(before), PATIENCE);
};
const killBus = (): void => {
  const [bus] = host.cluster.members.filter(({ kind }) => kind === 'bus');
  process.kill(bus?.pid() as number, 'SIGKILL');
};
const cachedMiB = (edge: string): number => {
  const blobs = join(pathsOf(host.cluster.configOf(edge)).layers, 'blobs/sha256');
  return readdirSync(blobs).reduce((sum, name) => sum + statSync(join(blobs, name)).size, 0) / MIB;
};
const fill = (box: Sandbox): Promise<string> => inside(box, `dd if=/dev/urandom of=/w/large bs=1M count=${LARGE_MIB} 2>/dev/null; sha256sum < /w/large`);

test('a snapshot of one node starts sandboxes on another, equal in every file', { timeout: 120_000 }, async () => {
  const box = await on('one', 'small');
  expect(edgeOf(box)).toBe('edge-1');
  await inside(box, 'mkdir /w/d; echo hello > /w/d/f; ln /w/d/f /w/hard; ln -s d /w/soft; rm /etc/group; chmod 4711 /w/d/f; mkdir /etc/new');
  const { snapshotId } = await box.snapshot();
  const tree = (one: Sandbox): Promise<string> => inside(one, `cd /w && ${MANIFEST}; cat d/f; ls -a /etc`);
  const expected = await tree(box);
  const copy = await on('two', { snapshot: snapshotId });
  expect(edgeOf(copy)).toBe('edge-2');
  expect(await tree(copy)).toBe(expected);
  await Promise.all([box.stop(), copy.stop()]);
});

test('the bus is killed while a snapshot is stored: the sandbox goes on, the snapshot is whole; killed again while it is fetched', {
  timeout: 240_000,
}, async () => {
  const box = await on('one', 'small');
  const content = await fill(box);
  const ticking = await box.start('i=0; while [ ! -e /w/enough ]; do i=$((i+1)); echo $i; sleep 0.05; done');
  const uploading = logged('edge-1', 'layer.uploading');
  const taking = box.snapshot({ timeoutMs: 120_000 });
  taking.catch(() => undefined); // looked at below
  await uploading;
  killBus();
  const { snapshotId } = await taking;
  await inside(box, 'touch /w/enough');
  await ticking.wait();
  const ticks = (await ticking.stdout.string()).trim().split('\n').map(Number);
  expect(ticks).toEqual(ticks.map((_, n) => n + 1));

  const fetching = logged('edge-2', 'layer.fetching');
  const creating = on('two', { snapshot: snapshotId });
  creating.catch(() => undefined); // looked at below
  await fetching;
  killBus();
  const copy = await creating;
  expect(await inside(copy, 'sha256sum < /w/large')).toBe(content);
  await Promise.all([box.stop(), copy.stop()]);
});

test('the copies on a node stay within their bound, and what was removed comes again', { timeout: 240_000 }, async () => {
  const box = await on('one', 'small');
  const made: { readonly snapshotId: string; readonly content: string }[] = [];
  for (let i = 0; i < 2; i += 1) made.push({ content: await fill(box), snapshotId: (await box.snapshot({ timeoutMs: 120_000 })).snapshotId });
  for (const { snapshotId, content } of [...made, ...made]) {
    const copy = await on('two', { snapshot: snapshotId });
    expect(await inside(copy, 'sha256sum < /w/large')).toBe(content);
    expect(cachedMiB('edge-2')).toBeLessThanOrEqual(CACHE_MIB);
    await copy.stop();
  }
  await box.stop();
});
