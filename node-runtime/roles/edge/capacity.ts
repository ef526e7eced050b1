/** What this node offers, read from the machine once at start. */
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import type { Machine } from '#bus/edge/probes.ts';
import type { Capacity } from '#bus/edge/schema.ts';
import type { CpuMillis, MiB } from '#bus/units.ts';
import type { Config } from '../../config.ts';
import { EDGE_LIMITS } from './limits.ts';

/** Hard limit of open files of this process; Linux's own default where /proc does not say. */
export const descriptorLimit = (): number => {
  const match = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
  return match ? Number(match[1]) : 4_096;
};

/** What one process in a sandbox may have open: the launcher gives no more than `NOFILE_MAX` of its `limits.h`. */
export const openFilesMax = (): number => Math.min(descriptorLimit(), EDGE_LIMITS.openFilesMax);

const pidLimit = (): number => Number.parseInt(readFileSync('/proc/sys/kernel/pid_max', 'utf8'), 10);

/** Free for everybody but root's own reserve. */
export const freeDiskMiB = (dir: string): number => {
  const { bavail, bsize } = statfsSync(dir);
  return Math.floor((bavail * bsize) / 1024 / 1024);
};

/** What stands behind what the node offers. */
export const machineOf = (dir: string): Machine => {
  const { blocks, bsize } = statfsSync(dir);
  return {
    memoryMiB: Math.floor(totalmem() / 1024 / 1024) as MiB,
    cpuMillis: (availableParallelism() * 1_000) as CpuMillis,
    diskMiB: Math.floor((blocks * bsize) / 1024 / 1024) as MiB,
  };
};

/** What new work can have without the kernel starting to take from others. */
export const availableMemoryMiB = (): number => Math.floor(Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) / 1024);

/** Swap of the host's own that pages can go to. Areas of zram are somebody's: ours is made for the purpose. */
const hostHasSwap = (): boolean =>
  readFileSync('/proc/swaps', 'utf8')
    .split('\n')
    .slice(1)
    .some((line) => line.length > 0 && !/^\S*\/zram\d+\s/.test(line));

/** Size of the swap that this node makes for paused sandboxes. */
export const pauseSwapMiB = ({ swapMiB }: Pick<Config, 'swapMiB'>): number =>
  swapMiB ?? (hostHasSwap() ? 0 : Math.floor(totalmem() / 1024 / 1024 / EDGE_LIMITS.swapDivisor));

/** A node of the null backend offers what it is told to: nothing of the machine stands behind it. */
const simulatedCapacity = ({ maxSandboxes: sandboxes = EDGE_LIMITS.slotsMax, memoryMiB, diskMiB }: CapacityConfig): Capacity => ({
  sandboxes,
  memoryMiB: (memoryMiB ?? sandboxes * EDGE_LIMITS.simulatedMiB) as MiB,
  cpuMillis: (sandboxes * 1_000 * EDGE_LIMITS.cpuOvercommit) as CpuMillis,
  pids: sandboxes * EDGE_LIMITS.simulatedPids,
  diskMiB: (diskMiB ?? sandboxes * EDGE_LIMITS.simulatedMiB) as MiB,
  descriptors: sandboxes * EDGE_LIMITS.descriptorsPerSandbox,
});

type CapacityConfig = Pick<Config, 'dataDir' | 'backend' | 'maxSandboxes' | 'memoryMiB' | 'diskMiB'>;
export const nodeCapacity = (config: CapacityConfig): Capacity => {
  if (config.backend === 'null') return simulatedCapacity(config);
  const descriptors = Math.max(0, descriptorLimit() - EDGE_LIMITS.descriptorReserve);
  const memoryMiB = config.memoryMiB ?? Math.max(0, Math.floor(totalmem() / 1024 / 1024) - EDGE_LIMITS.memoryReserveMiB) * EDGE_LIMITS.memoryOvercommit;
  const diskMiB = config.diskMiB ?? Math.max(0, freeDiskMiB(config.dataDir) - EDGE_LIMITS.diskReserveMiB) * EDGE_LIMITS.diskOvercommit;
  const sandboxes = Math.min(
    config.maxSandboxes ?? EDGE_LIMITS.sandboxesMax,
    EDGE_LIMITS.slotsMax,
    Math.floor(descriptors / EDGE_LIMITS.descriptorsPerSandbox),
  );
  return {
    sandboxes,
    memoryMiB: memoryMiB as MiB,
    cpuMillis: (availableParallelism() * 1_000 * EDGE_LIMITS.cpuOvercommit) as CpuMillis,
    pids: pidLimit() * EDGE_LIMITS.pidsOvercommit,
    diskMiB: diskMiB as MiB,
    descriptors,
  };
};
