/** One Edge and every command it can get, with the values that make a difference. */
import type { Capacity, EdgeCommand } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import { edgeAddress } from '#bus/subjects.ts';
import type { CpuMillis, DurationMs, MiB, TimestampMs } from '#bus/units.ts';

export const T0 = 1_700_000_000_000;
export const LEASE_MS = 30_000 as DurationMs;
export const address = edgeAddress('edge-1' as EdgeName);
export const capacity: Capacity = {
  sandboxes: 100,
  memoryMiB: 65_536 as MiB,
  cpuMillis: 64_000 as CpuMillis,
  pids: 100_000,
  diskMiB: 65_536 as MiB,
  descriptors: 4_000,
};

export const register = (instance: string, leaseMs = LEASE_MS): EdgeCommand => ({
  type: 'RegisterEdge',
  capacity,
  backends: ['container'],
  leaseMs,
  instance,
  queueSequence: 7,
});
export const fenceQueue = (generation: number, instance: string, queueSequence = 9): EdgeCommand => ({
  type: 'FenceQueue',
  generation,
  instance,
  queueSequence,
});
export const renew = (generation: number, instance: string, leaseMs = LEASE_MS): EdgeCommand => ({ type: 'RenewLease', generation, instance, leaseMs });
/** The finding of a watcher that saw the lease granted at `T0 + grantedAfterMs` and nothing since. */
export const lost = (generation: number, grantedAfterMs = 0, silentMs = LEASE_MS + 1): EdgeCommand => ({
  type: 'DeclareLost',
  generation,
  leaseUntil: (T0 + grantedAfterMs + LEASE_MS) as TimestampMs,
  silentMs: silentMs as DurationMs,
  reason: 'its lease was not renewed',
});
export const cordon: EdgeCommand = { type: 'CordonEdge', reason: 'maintenance' };
export const uncordon: EdgeCommand = { type: 'UncordonEdge' };
export const retire = (generation: number): EdgeCommand => ({ type: 'RetireEdge', generation });

export const COMMANDS: readonly EdgeCommand[] = [
  ...['a', 'b'].map((instance) => register(instance)),
  register('a', 1 as DurationMs),
  ...[1, 2, 3].flatMap((generation) => [fenceQueue(generation, 'a'), renew(generation, 'a'), renew(generation, 'b'), lost(generation), retire(generation)]),
  renew(1, 'a', 3_600_000 as DurationMs),
  lost(1, 0, LEASE_MS),
  cordon,
  uncordon,
];
export const DELAYS_MS: readonly number[] = [0, 10_000, LEASE_MS + 1];
