/** Ways out by mounts, namespaces, device nodes, files of the kernel and system calls that nobody inside needs. */
import { statSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '#sdk/mod.ts';
import { denied, Lab, neverSucceeded, type Outcomes } from './lab.ts';

let lab: Lab;
let box: Sandbox;

beforeAll(async () => {
  lab = await Lab.open();
  box = await lab.sandbox();
});
afterAll(async () => lab?.close());

const USERS = ['root', 'agent'] as const;
const without = (outcomes: Outcomes, ...names: string[]): Outcomes => new Map([...outcomes].filter(([name]) => !names.includes(name)));
const placeOf = (path: string): string => {
  const { dev, ino } = statSync(path);
  return `ok ${dev}:${ino}`;
};

describe('mounts, namespaces and device nodes', () => {
  const WHITEOUT = ['node 0:0 whiteout', 'open node 0:0 in /dev'];
  const WALK = 'chroot and walk up';
  const IN_DEV = ['node 1:3 null in /dev', 'node 1:11 kmsg', 'node 10:229 fuse'];
  const REFUSED = denied({
    EPERM: [
      ...['mount proc', 'mount sysfs', 'mount tmpfs', 'mount cgroup2', 'mount cgroup', 'mount devpts', 'mount overlay', 'bind /proc', 'bind /proc/1/root'],
      ...['remount / writable', 'remount /proc/sys writable', 'remount /sys writable', 'share /', 'unmount the mask of /proc/interrupts', 'unmount /proc'],
      ...['fsopen', 'open_tree clone', 'move_mount', 'mount_setattr', 'pivot_root', 'setns own mount'],
      ...[
        'unshare user',
        'unshare mount',
        'unshare net',
        'unshare pid',
        'unshare cgroup',
        'unshare time',
        'clone user',
        'clone mount',
        'clone user, mount and net',
      ],
      ...['node 1:1 mem', 'node 8:0 sda', 'node 7:0 loop', 'node 1:3 null', ...IN_DEV],
    ],
    ENOSYS: ['clone3 user'], // its flags lie behind a pointer; so C libraries fall back to clone
  });

  test('root inside: none', async () => {
    expect(without(await lab.inside(box, ['mounts']), ...WHITEOUT, WALK)).toEqual(REFUSED);
  });

  test('another user: none either, and /dev is not even his', async () => {
    const refused = new Map([...REFUSED, ...denied({ EACCES: [...IN_DEV, ...WHITEOUT], EPERM: [WALK] })]);
    expect(await lab.inside(box, ['mounts'], { user: 'agent' })).toEqual(refused);
  });

  test('control: root of the host can do each of them in a namespace of its own', () => {
    const missing = neverSucceeded(REFUSED, [lab.outside('mounts')]);
    expect(missing).toEqual(['bind /proc/1/root']); // there PID 1 lies in another mount namespace, which the kernel says only to those who may mount
    expect(lab.outside('mounts').get('bind /proc/1/root')).toBe('EINVAL');
  });

  test('the mark of a deletion, which anybody may make elsewhere, is none on the root and opens nothing in /dev', async () => {
    const outcomes = await lab.inside(box, ['mounts']);
    expect(WHITEOUT.map((name) => outcomes.get(name))).toEqual(['EPERM', 'ENXIO']);
    expect(lab.outside('mounts').get('node 0:0 whiteout')).toBe('ok');
  });

  test('the way out of a chroot ends at the sandbox’s own root; on the host it ends at the host’s', async () => {
    const own = (await box.runShell("stat -c '%d:%i' /")).stdout.trim();
    expect((await lab.inside(box, ['mounts'])).get(WALK)).toBe(`ok ${own}`);
    expect(lab.outside('mounts').get(WALK)).toBe(placeOf('/'));
    expect(`ok ${own}`).not.toBe(placeOf('/'));
  });
});

describe('system calls', () => {
  const ABSENT = ['kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module', 'ioperm', 'iopl'];
  const REFUSED = denied({
    EPERM: [
      ...['keyctl', 'add_key', 'request_key', 'io_uring_setup', 'bpf', 'perf_event_open', 'userfaultfd', 'open_by_handle_at', 'syslog', 'clock_settime'],
      ...['settimeofday', 'reboot', 'swapon', 'swapoff', 'acct', 'quotactl', 'sethostname', 'setdomainname', 'vhangup', 'personality', 'fanotify_init'],
      ...['set_mempolicy', 'migrate_pages', 'capset CAP_SYS_ADMIN', ...ABSENT],
    ],
    // io_setup: its requests are counted for the whole host together; programs fall back to threads
    ENOSYS: ['x32 getpid', 'number 4095', 'io_setup'],
    SIGSYS: ['i386 getpid'],
  });

  test.each(USERS)('as %s: refused before the kernel looks at them', async (user) => {
    expect(without(await lab.inside(box, ['calls'], { user }), 'bounding set')).toEqual(REFUSED);
  });

  test('control: the host’s kernel answers each of them, or has none of that kind', () => {
    const outside = lab.outside('calls');
    const answered = neverSucceeded(REFUSED, [outside]).filter((name) => outside.get(name) !== 'ENOSYS');
    expect(answered).toEqual([]);
    expect([...outside.values()].filter((outcome) => outcome.startsWith('ok')).length).toBeGreaterThan(20);
  });
});

describe('files of the kernel', () => {
  const WRITE = [
    '/proc/sys/kernel/core_pattern',
    '/proc/sys/kernel/hostname',
    '/proc/sys/kernel/ns_last_pid',
    '/proc/sys/vm/drop_caches',
    '/proc/sys/vm/overcommit_memory',
    '/proc/sys/fs/file-max',
    '/proc/sys/net/ipv4/ip_forward',
  ];

  test('none of /proc can be written', async () => {
    const outcomes = await lab.inside(box, ['files', 'write', ...WRITE]);
    // twice refused: the files are the host root's, and the mount is read-only; those of the network namespace may be one's own
    expect([...outcomes].filter(([, outcome]) => !['EACCES', 'EROFS', 'ENOENT'].includes(outcome))).toEqual([]);
    expect(outcomes.get('/proc/sys/kernel/core_pattern')).toBe('EACCES');
    expect((await box.runShell('grep " /proc/sys " /proc/self/mountinfo')).stdout).toContain(' ro,');
  });

  test('control: root of the host may write there', () => {
    expect(neverSucceeded(new Map(WRITE.map((path) => [path, ''])), [lab.outside('files', 'write', ...WRITE)])).toEqual([]);
  });

  test('the trigger of the kernel’s emergency keys, and switches that some kernels lack', async () => {
    const paths = ['/proc/sysrq-trigger', '/proc/pressure/memory', '/proc/mtrr', '/proc/1/oom_score_adj', '/proc/self/uid_map', '/proc/self/gid_map'];
    const outcomes = await lab.inside(box, ['files', 'write', ...paths]);
    // a process's own maps can be opened; the kernel takes them only once
    const maps = ['/proc/self/uid_map', '/proc/self/gid_map'];
    expect([...without(outcomes, ...maps)].filter(([, outcome]) => !['EROFS', 'ENOENT', 'EACCES', 'EPERM'].includes(outcome))).toEqual([]);
    const again = await box.runShell('echo "0 0 4294967295" > /proc/self/uid_map');
    expect(again.stderr).toMatch(/not permitted/);
  });

  test('nothing of /sys can be written, and no cgroup is there to be seen', async () => {
    const writable = await box.runShell('find /sys -type f -perm -200 2>/dev/null | head -400', { timeoutMs: 60_000 });
    const paths = writable.stdout.trim().split('\n');
    expect(paths.length).toBeGreaterThan(100);
    const outcomes = await lab.inside(box, ['files', 'write', ...paths]);
    expect([...outcomes].filter(([, outcome]) => !['EROFS', 'EACCES', 'EPERM'].includes(outcome))).toEqual([]);
    expect((await box.runShell('ls /sys/fs/cgroup; find / -name release_agent -o -name notify_on_release -o -name cgroup.procs')).stdout).toBe('');
  });

  test('memory, pages, keys and logs of the kernel give no byte', async () => {
    const paths = [
      '/proc/kcore',
      '/proc/kmsg',
      '/proc/kpagecount',
      '/proc/kpageflags',
      '/proc/kpagecgroup',
      '/proc/keys',
      '/proc/timer_list',
      '/proc/interrupts',
      '/proc/slabinfo',
      '/proc/vmallocinfo',
      '/proc/pagetypeinfo',
      '/proc/sched_debug',
    ];
    const outcomes = await lab.inside(box, ['files', 'read', ...paths]);
    expect([...outcomes].filter(([, outcome]) => !['ok 0', 'EACCES', 'EPERM', 'ENOENT'].includes(outcome))).toEqual([]);
    const outside = lab.outside('files', 'read', ...paths);
    expect([...outside].filter(([, outcome]) => /^ok [1-9]/.test(outcome)).length).toBeGreaterThan(6);
  });

  test('a search through every file that root inside can open harms nobody', async () => {
    // not below /proc/<pid>: pagemap has no end anywhere
    const words = 'no such words anywhere';
    const grep = await box.runShell(`grep -s -l "${words}" /proc/*; grep -r -s -l "${words}" /sys /proc/sys /proc/fs /proc/irq /proc/bus /dev/shm`, {
      timeoutMs: 120_000,
    });
    expect(grep.reason).toBe('exited');
    expect((await box.exec(['true'])).ok).toBe(true);
  });

  const FILE_SYSTEM_CALLS = denied({ EPERM: ['immutable flag', 'FIFREEZE'], EINVAL: ['project id'], ENOTTY: ['XFS_IOC_SWAPEXT', 'FITRIM'] });

  test.each(['/w', '/dev/shm'])('calls of file systems on files of one’s own in %s', async (directory) => {
    expect(await lab.inside(box, ['files', 'ioctl', directory])).toEqual(FILE_SYSTEM_CALLS);
  });

  test('and on a disk of one’s own', async () => {
    const withDisk = await lab.sandbox({ diskLimitMb: 32 });
    expect(await lab.inside(withDisk, ['files', 'ioctl', '/w'])).toEqual(FILE_SYSTEM_CALLS);
    await withDisk.stop();
  });

  test('control: on a tmpfs of the host the flag is set and the others are no question of rights', () => {
    const outside = lab.onTmpfs('files', 'ioctl');
    expect(outside.get('immutable flag')).toBe('ok');
    expect([...outside.values()]).not.toContain('EPERM');
  });
});

describe('sockets and terminals', () => {
  const ALLOWED = ['tcp', 'tcp6', 'unix', 'netlink route'];

  test.each(USERS)('as %s: no packets, no other families, no changes to the network', async (user) => {
    const outcomes = await lab.inside(box, ['sockets', 'families'], { user });
    expect(ALLOWED.map((name) => outcomes.get(name))).toEqual(ALLOWED.map(() => 'ok'));
    expect(without(outcomes, ...ALLOWED)).toEqual(
      denied({
        EPERM: ['packet raw', 'packet datagram', 'icmp raw', 'ip raw', 'icmp6 raw', 'add link', 'add route', 'add firewall table', 'transparent source'],
        EAFNOSUPPORT: ['xdp', 'vsock', 'alg', 'key', 'can'],
        ENOPROTOOPT: ['packet filter', 'port filter'],
      }),
    );
  });

  test('control: root of the host may, in a network namespace of its own, as far as the kernel has the family', () => {
    const outside = lab.outside('sockets', 'families');
    const refused = [...outside].filter(([, outcome]) => !outcome.startsWith('ok'));
    expect(refused.filter(([, outcome]) => outcome !== 'EAFNOSUPPORT' && outcome !== 'EPROTONOSUPPORT')).toEqual([]);
    expect(refused.length).toBeLessThan(5);
  });

  test('a terminal takes forged input from nobody but those whose own it is', async () => {
    const inside = await lab.inside(box, ['sockets', 'terminal']);
    expect(['type into other', 'steal'].map((name) => inside.get(name))).toEqual(['EPERM', 'EPERM']);
    const outside = lab.outside('sockets', 'terminal');
    expect(['type into other', 'steal'].map((name) => outside.get(name))).toEqual(['ok', 'ok']);
  });
});
