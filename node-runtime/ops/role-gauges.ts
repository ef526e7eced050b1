/** Gauges and checks that belong to one role: what it holds, and what must hold for it to do its work. */
import type { Capacity } from '#bus/edge/schema.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { OPS_LIMITS } from './limits.ts';
import type { RoleOps } from './role-ops.ts';

const BYTES_PER_MIB = 1_048_576;

/** What an Edge shows of itself. */
export type EdgeLook = {
  readonly edge: string;
  readonly capacity: Capacity;
  readonly used: Capacity;
  readonly accepting: boolean;
  readonly fenced: boolean;
  readonly byStatus: Readonly<Record<string, number>>;
  /** Null while the launcher is not at hand. */
  readonly launcherWaiting: number | null;
};

export const showEdge = (ops: RoleOps, look: () => EdgeLook): void => {
  const { edgeUsed, edgeCapacity, edgeSandboxes, edgeAccepting, edgeFenced, launcherWaiting } = ops.instruments;
  const shown = new Set<string>();
  ops.check('lease', () => {
    const { edge, fenced } = look();
    return fenced ? `node ${edge} cannot renew its lease: its sandboxes are frozen until it can` : null;
  });
  ops.check('launcher', () => {
    const { edge, launcherWaiting: waiting } = look();
    return waiting === null ? `node ${edge} has no launcher at the moment` : null;
  });
  ops.collect(() => {
    const { edge, capacity, used, accepting, fenced, byStatus, launcherWaiting: waiting } = look();
    for (const [of, amounts] of [
      [edgeUsed, used],
      [edgeCapacity, capacity],
    ] as const)
      for (const { resource, unit, value } of resourcesOf(amounts)) of.set({ edge, resource, unit }, value);
    for (const status of Object.keys(byStatus)) shown.add(status);
    for (const status of shown) edgeSandboxes.set({ edge, status }, byStatus[status] ?? 0);
    edgeAccepting.set({ edge }, accepting ? 1 : 0);
    edgeFenced.set({ edge }, fenced ? 1 : 0);
    if (waiting !== null) launcherWaiting.set({ edge }, waiting);
    else launcherWaiting.remove({ edge });
  });
};

/** Prometheus's base units. */
const resourcesOf = (c: Capacity) => [
  { resource: 'sandboxes', unit: 'count', value: c.sandboxes },
  { resource: 'memory', unit: 'bytes', value: c.memoryMiB * BYTES_PER_MIB },
  { resource: 'cpu', unit: 'cores', value: c.cpuMillis / 1_000 },
  { resource: 'pids', unit: 'count', value: c.pids },
  { resource: 'disk', unit: 'bytes', value: c.diskMiB * BYTES_PER_MIB },
  { resource: 'descriptors', unit: 'count', value: c.descriptors },
];

export type ProjectionLook = {
  readonly shards: readonly string[];
  readonly eventLog: Pick<EventLog, 'bounds'>;
  readonly asOf: () => Readonly<Record<string, number>>;
};

/** A list that is far behind the log answers, and misleads. */
export const showProjection = (ops: RoleOps, { shards, eventLog, asOf }: ProjectionLook): void => {
  const { projectionLag } = ops.instruments;
  const lagOf = async (shard: string): Promise<number> => {
    const { lastSequence } = await eventLog.bounds(shard as Parameters<EventLog['bounds']>[0]);
    return Math.max(0, lastSequence - (asOf()[shard] ?? 0));
  };
  ops.collect(async () => {
    await Promise.all(
      shards.map(async (shard) => {
        try {
          projectionLag.set({ shard }, await lagOf(shard));
        } catch {
          projectionLag.remove({ shard });
        }
      }),
    );
  });
  ops.check('projection', async () => {
    const lags = await Promise.all(shards.map(async (shard) => ({ shard, lag: await lagOf(shard) })));
    const behind = lags.find(({ lag }) => lag > OPS_LIMITS.projectionLagCommits);
    return behind ? `lists are ${behind.lag} commits of shard ${behind.shard} behind the log` : null;
  });
};

/** `counts`: by kind or judgement; what was shown before and is no longer there is shown as 0. */
export const showCounts = (ops: RoleOps, gauge: 'watchedEdges' | 'heldActors', counts: () => Readonly<Record<string, number>>): void => {
  ops.collect(() => {
    const { watchedEdges, heldActors } = ops.instruments;
    for (const [name, value] of Object.entries(counts()))
      if (gauge === 'watchedEdges') watchedEdges.set({ health: name }, value);
      else heldActors.set({ kind: name }, value);
  });
};
