/** The world inside a sandbox: who it is, what is mounted, what is hidden, what it can reach. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LauncherStand, type TestSandbox } from './launcher-stand.ts';

const SLOT = 5;
const OWNER = 100_000 + SLOT * 65_536;

let stand: LauncherStand;
let sandbox: TestSandbox;

beforeAll(async () => {
  stand = new LauncherStand();
  await stand.connect();
  sandbox = await stand.sandbox(SLOT, { hostname: 'the-box' });
});

afterAll(async () => {
  sandbox.close();
  expect(await stand.close()).toEqual([]);
});

const stdout = async (command: string | readonly string[]): Promise<string> => {
  const { code, stdout: out, stderr } = await sandbox.run(command);
  expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
  return out;
};

test('root inside is nobody outside: one range of ids per sandbox', async () => {
  expect(await stdout('id -u; id -g')).toBe('0\n0\n');
  expect((await stdout('cat /proc/self/uid_map')).trim().split(/\s+/)).toEqual(['0', String(OWNER), '65536']);
  expect(readFileSync(`/proc/${sandbox.pid}/status`, 'utf8')).toMatch(new RegExp(`^Uid:\\t${OWNER}\\t${OWNER}`, 'm'));
  expect(await stdout('stat -c "%u:%g %a" / /bin/busybox /etc/passwd')).toBe('0:0 755\n0:0 755\n0:0 644\n');
});

test('its host name, and files that say so, which are not part of its disk', async () => {
  expect(await stdout('hostname; cat /etc/hostname')).toBe('the-box\nthe-box\n');
  expect(await stdout('cat /etc/hosts')).toContain('127.0.1.1 the-box');
  expect(await stdout('grep -c nameserver /etc/resolv.conf || true')).toBe('0\n');
  expect((await sandbox.run('echo 10.0.0.1 other >> /etc/hosts; grep -q other /etc/hosts')).code).toBe(0);
  const upper = join(sandbox.box, 'upper/etc');
  expect(readdirSync(upper).sort()).toEqual(['hosts', 'resolv.conf']); // empty mount points: the image had none
  for (const name of readdirSync(upper)) expect(lstatSync(join(upper, name)).size).toBe(0);
});

test('writes land in the upper, in the sandbox’s range; deletions are marks of the host’s root', async () => {
  await stdout('echo data > /root/file; rm /bin/ping; mkdir /new; mv /root /moved');
  expect(lstatSync(join(sandbox.box, 'upper/moved/file'))).toMatchObject({ uid: OWNER, gid: OWNER, size: 5 });
  const whiteout = lstatSync(join(sandbox.box, 'upper/bin/ping'));
  expect(whiteout.isCharacterDevice()).toBe(true);
  expect(whiteout).toMatchObject({ uid: 0, rdev: 0 });
  expect((await sandbox.run('test -e /bin/ping')).code).toBe(1);
});

test('/dev holds Docker’s nodes, a pts of its own, shm and mqueue', async () => {
  expect(await stdout('head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 3 /dev/urandom | wc -c')).toBe('3\n3\n');
  expect(await stdout('ls /dev')).toBe(
    `${['fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero'].join('\n')}\n`,
  );
  expect(await stdout('ls /dev/pts; readlink /dev/ptmx')).toBe('ptmx\npts/ptmx\n');
  expect(await stdout('stat -c %a /dev/shm /tmp /dev/pts/ptmx')).toBe('1777\n1777\n666\n');
  expect((await sandbox.run('echo x > /dev/full')).code).not.toBe(0);
  expect(await stdout('grep " /dev/shm " /proc/mounts')).toContain('size=32768k'); // half of the memory limit
});

test('what Docker hides in /proc is hidden, and what it protects is read-only', async () => {
  for (const file of ['kcore', 'keys', 'timer_list', 'kpagecount', 'kpageflags', 'kpagecgroup', 'interrupts']) {
    expect(await stdout(`test ! -e /proc/${file} || head -c 1 /proc/${file} | wc -c`)).toMatch(/^(0\n)?$/);
  }
  for (const directory of ['/proc/acpi', '/proc/scsi', '/sys/firmware']) expect(await stdout(`test ! -d ${directory} || ls ${directory}`)).toBe('');
  for (const file of ['/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/sys/kernel/uevent_helper']) {
    expect((await sandbox.run(`test ! -e ${file} || echo x > ${file}`)).stderr).toMatch(/Read-only file system|^$/);
  }
  expect(await stdout('grep -E "^[^ ]+ /(sys|proc/sys|proc/irq|proc/bus) " /proc/mounts | grep -vc " ro,"  || true')).toBe('0\n');
});

test('nothing of the host shows: no path of it, no process, no mount, no network but lo', async () => {
  const seen = await stdout('cat /proc/self/mountinfo /proc/mounts /proc/self/cgroup; ls /; ls /proc/self/fd');
  expect(seen).not.toContain(stand.dir);
  expect(seen).not.toContain(stand.cgroupName);
  expect(await stdout('ls -d /proc/[0-9]* | wc -l')).toMatch(/^[2-6]\n$/);
  expect(await stdout('ip -o link | wc -l')).toBe('1\n');
  expect(await stdout('ip -o addr show lo')).toMatch(/inet 127\.0\.0\.1\/8[\s\S]*inet6 ::1\/128/);
  expect((await sandbox.run('ip -o link show lo')).stdout).toMatch(/<LOOPBACK,UP/);
  expect((await sandbox.run('ls /proc/1/fd; ls /proc/1/root/; cat /proc/1/environ')).stdout).toBe('');
  expect(await stdout('test ! -e /proc/1/exe || readlink /proc/1/exe || true')).toBe('');
});

test('commands inherit no descriptor, no signal setting and no session of the launcher', async () => {
  expect(await stdout(['ls', '/proc/self/fd'])).toBe('0\n1\n2\n3\n'); // 3 is the directory that ls reads
  expect(await stdout(['grep', '-E', 'Sig(Blk|Ign):', '/proc/self/status'])).toBe('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
  expect(readFileSync(`/proc/${sandbox.pid}/environ`, 'utf8')).toBe('');
});

test('layers: later ones lie on top, and a deletion hides what lies below', async () => {
  const workspace = stand.image('workspace', (root) => {
    mkdirSync(join(root, 'w'));
    writeFileSync(join(root, 'w/a'), 'workspace');
    writeFileSync(join(root, 'w/b'), 'workspace');
  });
  const toolkit = stand.image('toolkit', (root) => {
    mkdirSync(join(root, 'w'));
    writeFileSync(join(root, 'w/b'), 'toolkit');
  });
  for (const image of [workspace, toolkit]) await stand.client.mountImage(image.digest, image.path);
  const layered = await stand.sandbox(20, { layers: [stand.base.digest, workspace.digest, toolkit.digest] });
  expect((await layered.run('cat /w/a /w/b; rm /w/b; ls /w')).stdout).toBe('workspacetoolkita\n');
  layered.close();
  await stand.client.destroy({ id: layered.id });
  for (const image of [workspace, toolkit]) await stand.client.umountImage(image.digest);
});
