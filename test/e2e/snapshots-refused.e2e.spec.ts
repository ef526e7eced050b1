/** Snapshots and forks that the layer store does not take: typed, the sandbox runs on, nothing half-done is left, and the same call works later. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { inside } from '#test/helpers/files.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

/** Room for the base layer and some tens of MiB. */
const STORE_MIB = 96;
const TOO_MUCH_MIB = 200;

let place: string;
let store: string;
let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'dsec-small-store-'));
  store = join(place, 'store');
  mkdirSync(store);
  execFileSync('sh', ['-euc', `truncate -s ${STORE_MIB}M "$0.img"; mkfs.ext4 -q "$0.img"; mount -o loop "$0.img" "$0"`, store]);
  host = await startTestPlatform({ overrides: { layerStore: { type: 'posix', dir: store } } });
  dsec = await connect({ contextFile: host.platform.contextFile });
  box = await dsec.runContainer({ image: 'small', memoryLimitMb: 64 });
  await inside(box, 'echo kept > /w/state');
});
afterAll(async () => {
  await dsec?.close();
  await host?.close();
  execFileSync('umount', [store]);
  rmSync(place, { recursive: true });
});

const halfDone = (): string[] => ['build', 'tmp'].flatMap((sub) => readdirSync(join(store, sub)));
const isUnharmed = async (): Promise<void> => {
  expect((await box.refresh()).status).toBe('running');
  expect(await inside(box, 'cat /w/state')).toBe('kept\n');
  expect(halfDone()).toEqual([]);
};
const remounted = (how: 'ro' | 'rw'): void => void execFileSync('mount', ['-o', `remount,${how}`, store]);

test('a store that is away: said so at once; when it is back the same name is made', async () => {
  remounted('ro');
  try {
    expect(await refusal(box.snapshot({ snapshotId: 'away' }))).toMatchObject({ code: 'LAYER_STORE_UNAVAILABLE', fault: 'infra', outcome: 'not_applied' });
    expect((await refusal(box.fork(2, { key: 'away' as never }))).code).toBe('LAYER_STORE_UNAVAILABLE');
    await isUnharmed();
  } finally {
    remounted('rw');
  }
  expect((await box.refresh()).snapshots).toEqual([]);
  await using copy = await dsec.runContainer({ image: { snapshot: (await box.snapshot({ snapshotId: 'away' })).snapshotId }, memoryLimitMb: 64 });
  expect(await inside(copy, 'cat /w/state')).toBe('kept\n');
  const group = await box.fork(2, { key: 'away' as never });
  expect(group.failures).toEqual([]);
  await group.stopAll();
});

test('more than the disk of the store holds, paused or running: NO_SPACE, and it is as it was', async () => {
  await inside(box, `dd if=/dev/urandom of=/w/large bs=1M count=${TOO_MUCH_MIB} 2>/dev/null`);
  const before = (await box.refresh()).snapshots.length;
  expect((await refusal(box.snapshot({ snapshotId: 'large' }))).code).toBe('NO_SPACE');
  expect((await refusal(box.fork(3))).code).toBe('NO_SPACE');
  await isUnharmed();
  await box.pause();
  expect((await refusal(box.snapshot({ snapshotId: 'large' }))).code).toBe('NO_SPACE');
  expect((await box.refresh()).status).toBe('paused');
  await inside(box, 'rm /w/large');
  await isUnharmed();
  expect((await box.refresh()).snapshots).toHaveLength(before);
  expect((await box.snapshot({ snapshotId: 'large' })).snapshotId).toBe('large');
});
