/** What the world does to a launch: an agent that dies, a disk that is full. Each is told by name, and nothing stays. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LauncherClient } from '#runtime/launcher/client.ts';
import { LauncherStand } from './launcher-stand.ts';

test('an agent that ends before it is ready', async () => {
  const stand = new LauncherStand(['--aether', '/bin/busybox']); // under the name `aether` it knows nothing to do
  const client = await stand.connect();
  await expect(client.launch(stand.spec(1))).rejects.toMatchObject({
    code: 'LAUNCH_FAILED',
    message: expect.stringContaining('ended with code 127'),
    details: { step: 'wait for Aether', launcherCode: 'DIED' },
  });
  expect(stand.leftovers()).toEqual([]);
  expect(await stand.close()).toEqual([]);
});

test('an agent that cannot be started', async () => {
  const text = '/etc/hostname';
  const stand = new LauncherStand(['--aether', text]);
  const client = await stand.connect();
  await expect(client.launch(stand.spec(1))).rejects.toMatchObject({ code: 'LAUNCH_FAILED', details: { step: 'start Aether', errno: 'ENOEXEC' } });
  expect(stand.leftovers()).toEqual([]);
  expect(await stand.close()).toEqual([]);
});

test('a launcher that cannot start says why', async () => {
  const stand = new LauncherStand(['--aether', '/nowhere/aether']);
  await expect(stand.connect()).rejects.toMatchObject({ code: 'HOST_UNFIT', message: expect.stringContaining('/nowhere/aether') });
  const works = new LauncherStand();
  await works.connect();
  expect(await works.close()).toEqual([]);
  execFileSync('rm', ['-r', stand.dir]);
});

/** A launcher whose `full` directory is a tmpfs with room for nothing much, in a mount namespace of its own. */
const startWithFullDisk = async (stand: LauncherStand, full: string, trashDir = stand.trashDir): Promise<LauncherClient> => {
  mkdirSync(full, { recursive: true });
  mkdirSync(stand.runDir, { recursive: true });
  const { binDir, runDir, cgroupName } = stand.options;
  const script = 'mount -t tmpfs -o size=16k,nr_inodes="$2" none "$1" && shift 2 && exec "$@"';
  const args = ['-m', 'sh', '-c', script, 'sh', full, '8', join(binDir, 'dsec-launcher'), '--run', runDir, '--cgroup', cgroupName, '--trash', trashDir];
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.unref();
  return LauncherClient.connect(join(runDir, 'launcher.sock'), 1);
};

test('a full disk below the sandboxes', async () => {
  const stand = new LauncherStand();
  const full = join(stand.dir, 'boxes');
  const client = await startWithFullDisk(stand, full, join(full, 'trash'));
  await client.mountImage(stand.base.digest, stand.base.path);
  const results = [];
  for (let n = 1; n <= 3; n += 1) results.push(await client.launch(stand.spec(n)).catch((error) => error.code));
  expect(results).toContain('NO_SPACE');
  expect((await client.list()).length).toBe(results.filter((r) => typeof r === 'object').length);
  await client.quit();
  client.close();
  expect(readdirSync(full)).toEqual([]); // it was a mount of the launcher's own namespace
  expect(await stand.close()).toEqual([]);
});

test('a trash that no rename reaches is told at the first launch', async () => {
  const stand = new LauncherStand();
  const full = join(stand.dir, 'boxes');
  const client = await startWithFullDisk(stand, full);
  await client.mountImage(stand.base.digest, stand.base.path);
  await expect(client.launch(stand.spec(1))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: { step: 'check trash' } });
  expect(await client.list()).toEqual([]);
  await client.quit();
  client.close();
  expect(await stand.close()).toEqual([]);
});

test('a full disk below the launcher itself: no launch, but what lives can be destroyed', async () => {
  const stand = new LauncherStand();
  const client = await startWithFullDisk(stand, join(stand.runDir, 'sandboxes'));
  await client.mountImage(stand.base.digest, stand.base.path);
  const launched: number[] = [];
  let refused = '';
  for (let n = 1; n <= 12 && !refused; n += 1) {
    try {
      await client.launch(stand.spec(n));
      launched.push(n);
    } catch (error) {
      refused = (error as { code: string }).code;
    }
  }
  expect(refused).toBe('NO_SPACE');
  expect(launched.length).toBeGreaterThan(0);
  for (const n of launched) await client.destroy({ id: stand.id(n) });
  expect(stand.leftovers()).toEqual([]);
  await client.quit();
  client.close();
  expect(await stand.close()).toEqual([]);
});

test('what is in the way of the socket or the record directory is named', async () => {
  const stand = new LauncherStand();
  mkdirSync(stand.runDir);
  writeFileSync(join(stand.runDir, 'tombs'), '');
  await expect(stand.connect()).rejects.toMatchObject({ code: 'HOST_UNFIT', message: expect.stringContaining('directory below --run') });
  execFileSync('rm', ['-r', stand.dir]);
});
