/** Death of the launcher: harms no live sandbox, and the next one finds, ends and launches as if nothing had happened. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LauncherClient } from '#runtime/launcher/client.ts';
import { ensureLauncher } from '#runtime/launcher/process.ts';
import { firstIdOf } from '#runtime/snapshots/packer.ts';
import { LauncherStand } from './launcher-stand.ts';

let stand: LauncherStand;

beforeAll(async () => {
  stand = new LauncherStand();
  await stand.connect();
});

afterAll(async () => {
  expect(await stand.close()).toEqual([]);
});

const kill = async (client: LauncherClient): Promise<void> => {
  const closed = new Promise<void>((resolve) => client.onClose(resolve));
  process.kill(client.info.pid, 'SIGKILL');
  await closed;
};

/** A zombie is its parent's business: after a launcher's death that is init. */
const isRunning = (pid: number): boolean => {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // gone, perhaps just now
  }
};

/** Waits for something that the kernel does in its own time; the test's time-out is the limit. */
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await delay(5);
};

test('live sandboxes go on, keep their images mounted once, and are ended by the next launcher', async () => {
  const sandbox = await stand.sandbox(1);
  await sandbox.start('while true; do echo tick >> /ticks; sleep 0.01; done');
  await kill(stand.client);
  await expect(stand.client.list()).rejects.toMatchObject({ code: 'EDGE_UNAVAILABLE' });
  const before = Number((await sandbox.run('wc -l < /ticks')).stdout);
  expect((await sandbox.run(`while [ $(wc -l < /ticks) -le ${before} ]; do sleep 0.01; done; echo more`)).stdout).toBe('more\n');

  const next = await ensureLauncher(stand.options);
  expect(await next.listImages()).toEqual([stand.base.digest]); // nobody has asked the new one to mount it
  next.close();
  await stand.connect();
  expect(await stand.client.list()).toEqual([{ id: sandbox.id, pid: sandbox.pid }]);
  expect((await stand.client.launch(stand.spec(1))).pid).toBe(sandbox.pid);
  await stand.client.freeze(sandbox.id);
  await stand.client.thaw(sandbox.id);
  await expect(stand.client.launch(stand.spec(2, { slot: 1 }))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await expect(stand.client.umountImage(stand.base.digest)).rejects.toMatchObject({ code: 'OVERLOADED' });
  sandbox.close();
  await stand.client.destroy({ id: sandbox.id });
  expect(isRunning(sandbox.pid)).toBe(false);
  expect(stand.leftovers()).toEqual([]);
});

test('tombstones survive', async () => {
  await stand.client.destroy({ id: stand.id(3) });
  await kill(stand.client);
  await stand.connect();
  await expect(stand.client.launch(stand.spec(3))).rejects.toMatchObject({ code: 'SANDBOX_ENDED' });
});

test('killed at any point of many launches: what is found can be ended, and every id can be launched', async () => {
  for (let round = 0; round < 12; round += 1) {
    const numbers = Array.from({ length: 6 }, (_, i) => 100 + round * 10 + i);
    const launches = numbers.map((n) => stand.client.launch(stand.spec(n)).catch(() => undefined));
    await delay(round); // a different place in the row each time
    await kill(stand.client);
    await Promise.all(launches);
    const next = await stand.connect();
    for (const { pid } of await next.list()) if (pid > 0) expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).not.toContain('launcher');
    await Promise.all(numbers.map((n) => next.launch(stand.spec(n))));
    await Promise.all(numbers.map((n) => next.destroy({ id: stand.id(n) })));
    expect(stand.leftovers()).toEqual([]);
  }
});

test('killed at any point of many destroys: the repeats finish them', async () => {
  for (let round = 0; round < 8; round += 1) {
    const numbers = Array.from({ length: 6 }, (_, i) => 300 + round * 10 + i);
    await Promise.all(numbers.map((n) => stand.client.launch(stand.spec(n))));
    const destroys = numbers.map((n) => stand.client.destroy({ id: stand.id(n) }).catch(() => undefined));
    await delay(round / 2);
    await kill(stand.client);
    await Promise.all(destroys);
    const next = await stand.connect();
    await Promise.all(numbers.map((n) => next.destroy({ id: stand.id(n) })));
    expect(await next.list()).toEqual([]);
    expect(stand.leftovers()).toEqual([]);
  }
});

test('a sandbox whose first process died is listed as dead and can be destroyed', async () => {
  const { pid } = await stand.client.launch(stand.spec(4));
  process.kill(pid, 'SIGKILL');
  await until(() => !isRunning(pid));
  expect(await stand.client.list()).toEqual([{ id: stand.id(4), pid: 0 }]);
  await stand.client.destroy({ id: stand.id(4) });
  expect(await stand.client.list()).toEqual([]);
  expect(stand.leftovers()).toEqual([]);
});

test('an upper whose overlay is still being let go of is waited for, and one that is in use is not taken', async () => {
  const { upper, work, execDir } = stand.spec(20);
  for (const directory of [upper, work]) {
    mkdirSync(directory, { recursive: true });
    chownSync(directory, firstIdOf(20), firstIdOf(20));
  }
  const same = { upper, work, execDir, slot: 20 };
  const hold =
    'mount -t tmpfs none /mnt; mkdir /mnt/l /mnt/m; mount -t erofs -o loop "$0" /mnt/l; mount -t overlay none -o lowerdir=/mnt/l,upperdir="$1",workdir="$2",index=on /mnt/m; echo held; read -r _';
  const holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', hold, stand.base.path, upper, work], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  await Promise.race([once(holder.stdout, 'data'), ended.then(() => Promise.reject(new Error('nothing was held')))]);
  await expect(stand.client.launch(stand.spec(21, same))).rejects.toMatchObject({ message: expect.stringContaining('busy') });
  const launching = stand.client.launch(stand.spec(22, same));
  holder.stdin.end('\n');
  expect((await launching).pid).toBeGreaterThan(0);
  await ended;
  await stand.client.destroy({ id: stand.id(22), upper, work });
  expect(stand.leftovers()).toEqual([]);
});

test('a second launcher for one directory does not start', async () => {
  const again = await ensureLauncher(stand.options);
  expect(again.info.pid).toBe(stand.client.info.pid);
  again.close();
  const { status, stderr } = spawnSync(join(stand.options.binDir, 'dsec-launcher'), ['--run', stand.runDir, '--cgroup', stand.cgroupName], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('another launcher serves') });
});
