import { statfsSync } from 'node:fs';
import { release } from 'node:os';
import { isAtLeast } from '#infra/nats/locate.ts';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { hasCapability, read } from '../helpers.ts';
import { DOCTOR_LIMITS } from '../limits.ts';

const CAP_SYS_ADMIN = 21;
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
];
