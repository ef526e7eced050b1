/** Limits, freezing and counters, in every layout of control groups that this machine can show, and on an old kernel's detours. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LauncherStand } from './launcher-stand.ts';

const VARIANTS: readonly (readonly [name: string, flags: readonly string[]])[] = [
  ['as this machine is', []],
  ['v1 control groups alone', ['--without-v2']],
  ['as on the oldest kernel', ['--old-kernel']],
];

describe.each(VARIANTS)('%s', (_, flags) => {
  let stand: LauncherStand;

  beforeAll(async () => {
    stand = new LauncherStand(flags);
    await stand.connect();
  });

  afterAll(async () => {
    expect(await stand.close()).toEqual([]);
  });

  test('says how it works', () => {
    if (flags.includes('--without-v2')) expect(stand.client.info.cgroup).toBe('v1');
    if (flags.includes('--old-kernel')) expect(stand.client.info.erofs).toBe('loop');
  });

  test('commands run, and the whole of it goes away', async () => {
    const sandbox = await stand.sandbox(1);
    expect((await sandbox.run('cat /etc/hostname; rm /bin/ip; ls /bin/ip')).stdout).toBe('box-1\n');
    await sandbox.start('sleep 1000 & sleep 1000');
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
    expect(stand.leftovers()).toEqual([]);
  });

  test('a fork bomb stops at the limit of processes, and the sandbox still answers', async () => {
    const sandbox = await stand.sandbox(2, { pids: 20 });
    const { stderr } = await sandbox.run('for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 100 & done');
    expect(stderr).toMatch(/can't fork|Resource temporarily unavailable/);
    await sandbox.start('exec sleep 100'); // in the shell's place
    expect((await stand.client.stats(sandbox.id)).pids).toBe(20);
    const joiners = await Promise.allSettled(Array.from({ length: 10 }, () => sandbox.run('true')));
    expect(joiners.map(({ status }) => status)).toEqual(Array(10).fill('rejected'));
    expect((await stand.client.stats(sandbox.id)).pids).toBe(20);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('all sandboxes together leave process ids to the host', () => {
    const limit = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].map((root) => `${root}/${stand.cgroupName}/pids.max`).find((file) => existsSync(file));
    const pidMax = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    expect(Number(readFileSync(limit ?? 'no pids.max', 'utf8'))).toBeLessThanOrEqual(pidMax - 2_048);
  });

  test('memory above the limit is reclaimed or killed, and counted', async () => {
    const sandbox = await stand.sandbox(3, { memoryMiB: 24 });
    expect(await stand.client.stats(sandbox.id)).toMatchObject({ oomKills: 0 });
    expect((await sandbox.run('tail /dev/zero')).code).not.toBe(0);
    const stats = await stand.client.stats(sandbox.id);
    expect(stats.oomKills).toBeGreaterThan(0);
    expect(stats.memoryBytes).toBeLessThanOrEqual(24 << 20);
    expect(stats.cpuUsec).toBeGreaterThan(0);
    expect((await sandbox.run('echo alive')).stdout).toBe('alive\n');
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('a frozen sandbox does nothing, answers nevertheless, and can be destroyed as it is', async () => {
    const sandbox = await stand.sandbox(4);
    await sandbox.start('while true; do echo x >> /ticks; done');
    expect((await sandbox.run('while [ ! -s /ticks ]; do sleep 0.01; done; echo running')).stdout).toBe('running\n');
    await stand.client.freeze(sandbox.id);
    const ticks = (): number => readFileSync(join(sandbox.box, 'upper/ticks')).length;
    const frozenAt = ticks();
    await delay(50);
    expect(ticks()).toBe(frozenAt);
    await stand.client.freeze(sandbox.id);
    await stand.client.thaw(sandbox.id);
    while (ticks() === frozenAt) await delay(5);
    await stand.client.freeze(sandbox.id);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
    expect(stand.leftovers()).toEqual([]);
  });

  test('many layers', async () => {
    const images = Array.from({ length: 32 }, (_, i) => stand.image(`layer-${i}`, (root) => writeFileSync(join(root, `from-${i}`), String(i))));
    for (const { digest, path } of images) await stand.client.mountImage(digest, path);
    const sandbox = await stand.sandbox(5, { layers: [stand.base.digest, ...images.map(({ digest }) => digest)] });
    expect((await sandbox.run('ls -d /from-* | wc -l; cat /from-31')).stdout).toBe('32\n31');
    await expect(stand.client.launch(stand.spec(6, { layers: [stand.base.digest, stand.base.digest] }))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('freezing or measuring what is not there is told so', async () => {
    const nobody = stand.id(99);
    for (const call of [() => stand.client.freeze(nobody), () => stand.client.thaw(nobody), () => stand.client.stats(nobody)])
      await expect(call()).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
  });
});
