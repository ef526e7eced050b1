/** A disk limit is the kernel's: full means full for the sandbox alone, and nothing of a disk outlives its sandbox, whoever is killed. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { MiB } from '#bus/units.ts';
import { DiskTemplates } from '#runtime/backends/container/disk-templates.ts';
import type { LaunchSpec } from '#runtime/launcher/answers.ts';
import { LauncherStand } from './launcher-stand.ts';

/** Files behind attached loop devices. */
const attached = (below: string): string[] =>
  readdirSync('/sys/block')
    .map((name) => join('/sys/block', name, 'loop/backing_file'))
    .filter((path) => existsSync(path))
    .flatMap((path) => {
      try {
        return [readFileSync(path, 'utf8').trim()];
      } catch {
        return []; // let go of meanwhile
      }
    })
    .filter((file) => file.startsWith(below));

describe.each([
  ['as this machine is', []],
  ['as on the oldest kernel', ['--old-kernel']],
] as const)('%s', (_, flags) => {
  let stand: LauncherStand;
  let templates: DiskTemplates;

  beforeAll(async () => {
    stand = new LauncherStand(flags);
    templates = new DiskTemplates(join(stand.dir, 'disks'));
    await stand.connect();
  });
  afterAll(async () => {
    expect(await stand.close()).toEqual([]);
    expect(attached(stand.dir)).toEqual([]);
  });

  const withDisk = async (n: number, size: number): Promise<Partial<LaunchSpec>> => ({
    disk: join(stand.box(n), 'disk.ext4'),
    diskTemplate: await templates.pathFor(size as MiB),
  });
  const disks = (): string[] => attached(join(stand.dir, 'boxes'));

  test('full in bytes: ENOSPC at the limit, what is there stays, and room comes back', async () => {
    const box = await stand.sandbox(1, await withDisk(1, 64));
    expect(await box.run('printf OLD > /root/cfg; dd if=/dev/zero of=/root/fill bs=1M')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No space left on device'),
    });
    expect(statSync(join(stand.box(1), 'disk.ext4')).size).toBe(64 * 2 ** 20);
    expect((await box.run('wc -c < /root/fill')).stdout).toMatch(/^(5\d|6[0-4])\d{6}\n$/);
    expect(await box.run('cat /root/cfg; echo hi')).toMatchObject({ code: 0, stdout: 'OLDhi\n' });
    expect(await box.run('rm /root/fill; echo ok > /root/after; cat /root/after')).toMatchObject({ code: 0, stdout: 'ok\n' });
    box.close();
    await stand.client.destroy({ id: box.id });
    await vi.waitFor(() => expect(disks()).toEqual([]), 10_000);
    expect(stand.leftovers()).toEqual([]);
  });

  test('full in inodes: the host keeps its own', async () => {
    const box = await stand.sandbox(2, await withDisk(2, 16));
    const { code, stderr } = await box.run('mkdir /root/d; i=0; while echo > /root/d/$i; do i=$((i+1)); done; echo $i >&2; false');
    expect(code).toBe(1);
    expect(stderr).toMatch(/No space left on device/);
    expect(Number(stderr.trim().split('\n').at(-1))).toBeGreaterThan(1_000);
    expect((await box.run('rm -r /root/d && echo > /root/x && echo fine')).stdout).toBe('fine\n');
    box.close();
    await stand.client.destroy({ id: box.id });
  });

  test('the image’s own files: copied up, deleted and renamed within the limit, like without one', async () => {
    const box = await stand.sandbox(3, await withDisk(3, 32));
    expect((await box.run('rm /bin/ip; ls /bin/ip 2>&1; mv /root /home && ls -d /home; echo x >> /etc/passwd; tail -n1 /etc/passwd')).stdout).toMatch(
      /No such file.*\n\/home\nx\n$/,
    );
    expect((await box.run('stat -c %u:%g /home; touch /home/new; stat -c %u /home/new')).stdout).toBe('0:0\n0\n');
    box.close();
    await stand.client.destroy({ id: box.id });
  });

  test('a neighbour has a disk of its own', async () => {
    const [full, other] = await Promise.all([stand.sandbox(4, await withDisk(4, 16)), stand.sandbox(5, await withDisk(5, 64))]);
    expect((await full.run('dd if=/dev/zero of=/root/fill bs=64k')).code).toBe(1);
    expect(await other.run('dd if=/dev/zero of=/root/f bs=1M count=40 2>&1 && wc -c < /root/f')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${40 * 2 ** 20}\n`),
    });
    for (const box of [full, other]) {
      box.close();
      await stand.client.destroy({ id: box.id });
    }
  });

  test('no mount of it is to be seen, neither inside nor in the launcher’s namespace', async () => {
    const box = await stand.sandbox(6, await withDisk(6, 16));
    expect((await box.run('cat /proc/self/mounts')).stdout).not.toMatch(/ext4|loop/);
    expect(readFileSync(`/proc/${stand.client.info.pid}/mounts`, 'utf8')).not.toContain(join(stand.dir, 'run/stage'));
    await vi.waitFor(() => expect(disks()).toEqual([join(stand.box(6), 'disk.ext4')]), 10_000);
    box.close();
    await stand.client.destroy({ id: box.id });
    await vi.waitFor(() => expect(disks()).toEqual([]), 10_000);
  });

  test('killed launcher, dead sandbox: the kernel lets go of everything, and a sandbox that lives keeps its disk', async () => {
    const box = await stand.sandbox(7, await withDisk(7, 16));
    const dead = await stand.client.launch(stand.spec(8, await withDisk(8, 16)));
    process.kill(stand.client.info.pid, 'SIGKILL');
    await vi.waitFor(() => expect(stand.client.open).toBe(false), 10_000);
    process.kill(dead.pid, 'SIGKILL');
    await vi.waitFor(() => expect(disks()).toEqual([join(stand.box(7), 'disk.ext4')]), 10_000);
    expect((await box.run('echo still > /root/x; cat /root/x')).stdout).toBe('still\n');
    await stand.connect(2);
    // it died before it was recorded as running: the launch is repeated, on the same disk
    await stand.client.launch(stand.spec(8, await withDisk(8, 16)));
    expect(disks().length).toBe(2);
    box.close();
    await stand.client.destroy({ id: stand.id(7) });
    await stand.client.destroy({ id: stand.id(8) });
    await vi.waitFor(() => expect(disks()).toEqual([]), 10_000);
    expect(stand.leftovers()).toEqual([]);
  });

  test('a launch that fails behind the disk lets go of it', async () => {
    const hostile = stand.image('no-proc', (root) => writeFileSync(join(root, 'proc'), 'in the way'));
    await stand.client.mountImage(hostile.digest, hostile.path);
    await expect(stand.client.launch(stand.spec(9, { ...(await withDisk(9, 16)), layers: [hostile.digest] }))).rejects.toMatchObject({ code: 'START_FAILED' });
    await vi.waitFor(() => expect(disks()).toEqual([]), 10_000);
    expect(stand.leftovers()).toEqual([]);
    await stand.client.umountImage(hostile.digest);
  });

  test('an image that is damaged or gone is a failure with a name', async () => {
    const spec = await withDisk(10, 16);
    writeFileSync(join(stand.dir, 'garbage'), 'x'.repeat(1 << 20));
    await expect(stand.client.launch(stand.spec(10, { ...spec, diskTemplate: join(stand.dir, 'garbage') }))).rejects.toMatchObject({
      code: 'LAUNCH_FAILED',
      details: { step: 'mount disk image' },
    });
    await expect(stand.client.launch(stand.spec(10, { ...spec, diskTemplate: join(stand.dir, 'nothing') }))).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(disks()).toEqual([]);
  });
});

test('templates are sparse, made once, and the oldest sizes go', async () => {
  const dir = execFileSync('mktemp', ['-d', join(tmpdir(), 'dsec-disks-XXXXXX')], { encoding: 'utf8' }).trim();
  try {
    const templates = new DiskTemplates(dir);
    const [a, b] = await Promise.all([templates.pathFor(10_240 as MiB), templates.pathFor(10_240 as MiB)]);
    expect(a).toBe(b);
    const { size, blocks } = statSync(a as string);
    expect([size, blocks * 512 < 2 ** 20]).toEqual([10_240 * 2 ** 20, true]);
    const { ino } = statSync(a as string);
    await new DiskTemplates(dir).pathFor(10_240 as MiB);
    expect(statSync(a as string).ino).toBe(ino);
    for (let mib = 16; mib < 16 + 64; mib += 1) await templates.pathFor(mib as MiB);
    expect(readdirSync(dir)).toHaveLength(64);
    expect(existsSync(a as string)).toBe(false);
  } finally {
    execFileSync('rm', ['-r', dir]);
  }
});
