/**
 * The Edge: one per node. Puts its parts together in the order in which they depend on each other, and takes them apart
 * in the reverse order. @paper §3.3
 *
 * Start: register (a new generation) → launcher under that epoch → the log's last commits, which are the desired state →
 * what the kernel really has → reconcile both ways → only then answer operations and take commands.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import type { Capacity } from '#bus/edge/schema.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { type Clock, clockWithOffset } from '#actors/ports/clock.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import { type Config, pathsOf, shardsOf } from '../../config.ts';
import type { Log } from '../../log/log.ts';
import type { EdgeLook } from '../../ops/role-gauges.ts';
import { FORGETTING_LIMITS, startForgetting } from '../forgetting.ts';
import { startForkSweep } from '../../snapshots/fork-sweep.ts';
import type { MayOperate } from '../authenticate.ts';
import { layersOfLive } from '../live-layers.ts';
import { acquire, step } from '../scope.ts';
import { Admission } from '#actors/edge/admission.ts';
import { sandboxForgettableAt } from '#actors/sandbox/retention.ts';
import { startBeats } from './beats.ts';
import { availableMemoryMiB, freeDiskMiB, nodeCapacity, openFilesMax } from './capacity.ts';
import { consumeEdgeCommands } from './commands.ts';
import { type Identity, openIdentity } from './identity.ts';
import { EDGE_LIMITS } from './limits.ts';
import { type Node, openNode } from './node.ts';
import { HostProbes } from './probes.ts';
import { openNullNode } from './null-node.ts';
import { serveOps } from './ops.ts';
import { Sandboxes } from './sandboxes.ts';
import { Settlements } from './settlements.ts';
import { sweepLogs } from './sweep.ts';
import { Waker } from './waker.ts';

export type EdgeOptions = {
  readonly config: Config;
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly queue: CommandQueue;
  readonly records: CommandRecords;
  /** Where layers may lie, off the node. */
  readonly layers: Pick<JetStreamBus, 'bucket'>;
  readonly log: Log;
  readonly mayOperate: MayOperate;
  /** Another process owns this node's name now. */
  readonly onSuperseded: (message: string) => void;
  /** This generation of the node was declared lost; only a new process, with a new generation, brings the node back. */
  readonly onLost: (message: string) => void;
};

export interface Edge {
  /** Ends every sandbox, then the launcher, and gives the name back: what `dsec up` does at Ctrl-C. */
  drain(reportLeft: (count: number) => void): Promise<void>;
  /** What operators look at. */
  look(): EdgeLook;
}

/** Everything that the doors stand before. */
type Inside = EdgeOptions & {
  readonly clock: Clock;
  readonly capacity: Capacity;
  readonly admission: Admission;
  readonly identity: Identity;
  readonly node: Node;
  readonly sandboxes: Sandboxes;
  readonly accepting: () => boolean;
  readonly settlements: Settlements;
};

/** Everything an Edge holds, released in reverse order when the scope ends. Live sandboxes are not released: they go on. */
export const startEdge = (o: EdgeOptions): Effect.Effect<Edge, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { config, eventLog, log } = o;
    const clock = clockWithOffset(config.clockOffsetMs);
    const capacity = nodeCapacity(config);
    const admission = new Admission(capacity, openFilesMax());
    let draining = false;
    let node: Node | undefined;
    const onFence = (fenced: boolean): void => {
      node?.backend.freezeAll(fenced).catch((thrown: unknown) => log.warn('edge.freeze_failed', { fenced, message: (thrown as Error).message }));
    };

    const { edgeName, leaseMs } = config;
    const identity = yield* openIdentity({ ...o, edge: edgeName, capacity, leaseMs, clock, onFence });
    const { lease } = identity;
    node = yield* config.backend === 'null'
      ? openNullNode(config, log)
      : openNode(config, lease.generation, { records: o.records, layers: o.layers }, clock, log);
    const fenced = (): boolean => lease.fenced;
    const settlements = new Settlements();
    const parts = {
      edge: edgeName,
      shards: shardsOf(config),
      generation: lease.generation,
      eventLog,
      admission,
      node,
      loss: identity.state(),
      fenced,
      clock,
      log,
      settlements,
    };
    const sandboxes = yield* acquire(
      () => new Sandboxes(parts),
      (s) => s.driver.close(),
    );
    yield* step(() => sandboxes.rehydrate());
    const accepting = (): boolean => !draining && !lease.fenced && identity.state().cordoned === null;
    const inside: Inside = { ...o, clock, capacity, admission, identity, node, sandboxes, settlements, accepting };
    yield* openDoors(inside);
    yield* startCleaning(inside);

    const { launcher, backend } = node;
    return {
      drain: async (reportLeft) => {
        draining = true;
        const ticker = setInterval(() => reportLeft(sandboxes.liveCount), EDGE_LIMITS.drainReportMs);
        await sandboxes.endAll();
        clearInterval(ticker);
        await backend.removeSwap();
        await lease.retire();
        await launcher.close(true);
      },
      look: () => ({
        edge: edgeName,
        capacity,
        used: admission.used(),
        accepting: accepting(),
        fenced: lease.fenced,
        byStatus: sandboxes.countByStatus(),
        launcherWaiting: launcher.waiting(),
      }),
    } satisfies Edge;
  });

/** Operations, commands, beats: what makes the Edge reachable. */
const openDoors = (i: Inside): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { config, connection, eventLog, queue, log, clock, capacity, admission, identity, node, accepting } = i;
    const { lease } = identity;
    const { driver } = i.sandboxes;
    const edge = config.edgeName;
    const { generation } = lease;
    const { backend, store, layersLocal } = node;
    const waker = new Waker({ driver, changes: i.sandboxes.changes, clock });
    yield* acquire(
      () =>
        serveOps({
          edge,
          connection,
          driver,
          eventLog,
          log,
          mayOperate: i.mayOperate,
          fenced: () => lease.fenced,
          live: (id) => backend.handler(id),
          ended: (state) => backend.endedHandler(state),
          awake: (address, id) => waker.awake(address, id),
        }),
      (ops) => ops.close(),
    );
    const missingLayer = (spec: SandboxState['spec']) => spec.layers.find((digest) => !store.has(digest)) ?? null;
    const { laneCount } = config;
    const isSimulated = config.backend === 'null'; // nothing of it is used, so nothing of the machine can run out
    const withoutEnd = () => Number.MAX_SAFE_INTEGER;
    let admittedThrough = 0;
    yield* acquire(
      () =>
        consumeEdgeCommands({
          edge,
          generation,
          connection,
          queue,
          eventLog,
          driver,
          admission,
          clock,
          log,
          laneCount,
          accepting,
          fencedSequence: identity.state().fencedSequence,
          missingLayer,
          catchUpLayers: () => store.catchUp(),
          layersLocal,
          freeDiskMiB: isSimulated ? withoutEnd : () => freeDiskMiB(config.dataDir),
          availableMemoryMiB: isSimulated ? withoutEnd : availableMemoryMiB,
          labels: config.nodeLabels,
          settlements: i.settlements,
          onAdmitted: (sequence) => {
            admittedThrough = Math.max(admittedThrough, sequence);
          },
        }),
      (consumer) => {
        i.settlements.close(); // who waits for sandboxes gives its command back
        return consumer.close();
      },
    );
    const probes = yield* acquire(
      () => new HostProbes(config.dataDir),
      (p) => p.close(),
    );
    const load = { used: () => admission.used(), tenancy: () => admission.tenancy(), admittedThrough: () => admittedThrough };
    const place = { labels: config.nodeLabels, layers: () => node.images.ready(), simulated: isSimulated };
    const health = { accepting, cordoned: () => identity.state().cordoned, probes: () => probes.look() };
    yield* acquire(
      () => startBeats({ edge, generation, connection, capacity, clock, ...health, ...load, ...place }),
      (beats) => beats.stop(),
    );
  });

/** What nobody needs any more: logs past their retention, trash, idle images, records past theirs. */
const startCleaning = ({ config, eventLog, log, clock, sandboxes, node }: Inside): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { sandboxes: sandboxesDir, trash: trashDir } = pathsOf(config);
    yield* acquire(
      () => sweepLogs({ sandboxesDir, trashDir, isLive: (id) => sandboxes.isLive(id), clock, log }),
      (sweeper) => sweeper.stop(),
    );
    yield* acquire(
      () => setInterval(() => void node.images.sweep(), EDGE_LIMITS.sweepMs),
      (timer) => clearInterval(timer),
    );
    const { captures } = node;
    if (captures) {
      const liveLayers = () => layersOfLive(eventLog, shardsOf(config));
      yield* acquire(
        () => startForkSweep({ store: captures, liveLayers, clock, log }),
        (forks) => forks.stop(),
      );
    }
    const actors = { kind: 'sandbox', home: config.edgeName } as const;
    const retention = { deletedMs: EDGE_LIMITS.logRetentionMs, endedMs: FORGETTING_LIMITS.auditRetentionMs };
    const forgettableAt = ({ commit }: { commit: { state: unknown } }) => sandboxForgettableAt(commit.state as SandboxState, retention);
    yield* acquire(
      () => startForgetting({ eventLog, shards: shardsOf(config), actors, forgettableAt, clock, log }),
      (forgetting) => forgetting.stop(),
    );
  });
