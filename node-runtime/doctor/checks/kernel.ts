import { existsSync } from 'node:fs';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { knowsFilesystem, numberIn, read, run } from '../helpers.ts';
import { checked, closeNoRange, emptyClone3, errnoOf, landlockVersion, pidfdOpen, prctl, withFd } from '../syscalls.ts';

const PR_SCHED_CORE = 62;

export const KERNEL_CHECKS: readonly Check[] = [
  {
    name: 'user namespaces',
    group: 'kernel',
    required: true,
    usedFor: 'root inside a sandbox is nobody outside; a range of ids per sandbox',
    cost: 'root inside could read, trace and signal the agent: no sandbox is created',
    fallback: null,
    probe: async () => {
      const { ok, output } = await run('unshare', '--user', '--map-root-user', 'true');
      return ok ? present(`at most ${numberIn('/proc/sys/user/max_user_namespaces') ?? 'unlimited'}`) : absent(output);
    },
  },
  {
    name: 'pid, mount, ipc, uts, net, cgroup namespaces',
    group: 'kernel',
    required: true,
    usedFor: 'what a sandbox sees of processes, files, hosts and networks',
    cost: 'no isolation: no sandbox is created',
    fallback: null,
    probe: async () => {
      const { ok, output } = await run('unshare', '--pid', '--fork', '--mount', '--ipc', '--uts', '--net', '--cgroup', 'true');
      return presentIf(ok, ok ? '' : output);
    },
  },
  {
    name: 'clone3',
    group: 'kernel',
    required: true,
    usedFor: 'a sandbox born in its namespaces and control group, with a pidfd',
    cost: 'the launcher cannot start a sandbox',
    fallback: null,
    probe: () => {
      const errno = errnoOf(emptyClone3);
      return presentIf(errno !== 'ENOSYS' && errno !== 'EPERM', errno === 'EINVAL' ? '' : (errno ?? ''));
    },
  },
  {
    name: 'pidfd',
    group: 'kernel',
    required: true,
    usedFor: 'signals and waits that never hit a reused pid',
    cost: 'the launcher cannot watch sandboxes',
    fallback: null,
    probe: () => withFd(pidfdOpen(process.pid), () => present()),
  },
  {
    name: 'close_range',
    group: 'kernel',
    required: true,
    usedFor: 'no descriptor of the platform reaches a sandbox',
    cost: 'the launcher refuses to start one',
    fallback: null,
    probe: () => {
      closeNoRange();
      return present();
    },
  },
  {
    name: 'seccomp filters',
    group: 'kernel',
    required: true,
    usedFor: 'the list of system calls open to a sandbox',
    cost: 'the whole kernel is open to the sandbox: none is created',
    fallback: null,
    probe: () => presentIf((read('/proc/sys/kernel/seccomp/actions_avail') ?? '').includes('errno'), read('/proc/sys/kernel/seccomp/actions_avail') ?? ''),
  },
  {
    name: 'own terminals (devpts)',
    group: 'kernel',
    required: true,
    usedFor: 'PTYs from the sandbox’s own /dev/pts',
    cost: 'no interactive sessions',
    fallback: null,
    probe: () => presentIf(knowsFilesystem('devpts')),
  },
  {
    name: 'Landlock',
    group: 'kernel',
    required: false,
    usedFor: 'a further wall around files for programs of the platform',
    cost: 'one wall fewer',
    fallback: 'user namespace, seccomp and dropped capabilities',
    probe: () => present(`ABI ${landlockVersion()}`),
  },
  {
    name: 'AppArmor',
    group: 'kernel',
    required: false,
    usedFor: 'rules on files and sockets that also bind root inside',
    cost: 'one wall fewer',
    fallback: 'user namespace, eBPF on the control group, masked /proc and /sys',
    probe: () => presentIf(read('/sys/module/apparmor/parameters/enabled') === 'Y'),
  },
  {
    name: 'core scheduling',
    group: 'kernel',
    required: false,
    usedFor: 'no best-effort sandbox on the sibling thread of a latency-sensitive one',
    cost: 'step latency suffers under best-effort load',
    fallback: 'SCHED_IDLE for best-effort sandboxes',
    probe: () => {
      const cookie = Buffer.alloc(8);
      const errno = errnoOf(() => checked('prctl', prctl(PR_SCHED_CORE, 0, 0, 0, cookie)));
      if (errno === 'ENODEV') return limited('the processor has no sibling threads');
      return presentIf(errno === undefined, errno ?? '');
    },
  },
  {
    name: 'FUSE',
    group: 'kernel',
    required: false,
    usedFor: 'layers read on demand',
    cost: 'layers are copied whole before a sandbox starts',
    fallback: 'local copies of layers',
    probe: () => presentIf(knowsFilesystem('fuse') && existsSync('/dev/fuse')),
  },
];
