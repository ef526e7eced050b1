import { statfsSync } from 'node:fs';
import { release } from 'node:os';
import { isAtLeast } from '#infra/nats/locate.ts';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { hasCapability, numberIn, read } from '../helpers.ts';
import { DOCTOR_LIMITS } from '../limits.ts';

const CAP_SYS_ADMIN = 21;
const CAP_SYS_RESOURCE = 24;
const gibibytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;

export const HOST_CHECKS: readonly Check[] = [
  {
    name: 'root',
    group: 'host',
    required: true,
    usedFor: 'mounts, namespaces, control groups, ids of sandboxes',
    cost: 'no sandbox can be created',
    fallback: null,
    probe: () =>
      presentIf(
        process.getuid?.() === 0 && hasCapability(CAP_SYS_ADMIN),
        `uid ${process.getuid?.()}${hasCapability(CAP_SYS_ADMIN) ? '' : ', no CAP_SYS_ADMIN'}`,
      ),
  },
  {
    name: 'Linux 5.19',
    group: 'host',
    required: true,
    usedFor: 'idmapped lower layers under overlay',
    cost: 'layers cannot be shared between sandboxes of different ids',
    fallback: null,
    probe: () => presentIf(isAtLeast(release(), '5.19'), release()),
  },
  {
    name: 'Node.js 20.19',
    group: 'host',
    required: true,
    usedFor: 'every role',
    cost: 'the program does not start',
    fallback: null,
    probe: () => presentIf(isAtLeast(process.versions.node, '20.19'), process.versions.node),
  },
  {
    name: 'memory',
    group: 'host',
    required: false,
    usedFor: 'admission of sandboxes',
    cost: 'fewer sandboxes at a time',
    fallback: 'the Edge refuses what does not fit (NODE_FULL)',
    probe: () => {
      const kibibytes = Number(/^MemAvailable:\s+(\d+)/m.exec(read('/proc/meminfo') ?? '')?.[1] ?? 0);
      const detail = `${gibibytes(kibibytes * 1024)} available`;
      return kibibytes < 1024 * 1024 ? limited(detail) : present(detail);
    },
  },
  {
    name: 'disk space',
    group: 'host',
    required: true,
    usedFor: 'layers, writable layers, output logs, the event log',
    cost: 'creates are refused (NO_SPACE)',
    fallback: null,
    probe: ({ scratch }) => {
      const { bavail, bsize } = statfsSync(scratch);
      const free = bavail * bsize;
      if (free < DOCTOR_LIMITS.minimumDiskBytes) return absent(`${gibibytes(free)} free`);
      return free < DOCTOR_LIMITS.comfortableDiskBytes ? limited(`${gibibytes(free)} free`) : present(`${gibibytes(free)} free`);
    },
  },
  {
    name: 'CAP_SYS_RESOURCE',
    group: 'limits',
    required: false,
    usedFor: 'raising hard limits, protecting the platform from the OOM killer',
    cost: 'the descriptor limit stays as it is; the kernel may pick a role when memory is short',
    fallback: 'admission counts descriptors; roles are started again',
    probe: () => presentIf(hasCapability(CAP_SYS_RESOURCE)),
  },
  {
    name: 'open files (hard)',
    group: 'limits',
    required: false,
    usedFor: 'sockets and logs of sandboxes, connections of the bus',
    cost: 'fewer sandboxes on this node',
    fallback: 'the Edge admits by descriptors',
    probe: () => {
      const hard = /^Max open files\s+\d+\s+(\d+)/m.exec(read('/proc/self/limits') ?? '')?.[1];
      return Number(hard) < DOCTOR_LIMITS.comfortableDescriptors ? limited(`${hard}`) : present(`${hard}`);
    },
  },
  {
    name: 'pid_max',
    group: 'limits',
    required: false,
    usedFor: 'processes of all sandboxes together',
    cost: 'fewer processes on this node',
    fallback: 'the Edge admits by pids',
    probe: () => {
      const pids = Math.min(numberIn('/proc/sys/kernel/pid_max') ?? 0, numberIn('/proc/sys/kernel/threads-max') ?? 0);
      return pids < DOCTOR_LIMITS.comfortablePids ? limited(String(pids)) : present(String(pids));
    },
  },
  {
    name: 'inotify',
    group: 'limits',
    required: false,
    usedFor: 'file watching inside sandboxes; the count is shared by all of them per id',
    cost: 'development servers in sandboxes may fail to watch files',
    fallback: 'each sandbox has its own ids, so it exhausts its own count only',
    probe: () => {
      const instances = numberIn('/proc/sys/fs/inotify/max_user_instances') ?? 0;
      const detail = `${instances} instances, ${numberIn('/proc/sys/fs/inotify/max_user_watches') ?? 0} watches`;
      return instances < DOCTOR_LIMITS.comfortableInotifyInstances ? limited(detail) : present(detail);
    },
  },
];
