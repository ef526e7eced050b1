/**
 * The Edge: one per node. Puts its parts together in the order in which they depend on each other, and takes them apart
 * in the reverse order. @paper §3.3
 *
 * Start: register (a new generation) → launcher under that epoch → the log's last commits, which are the desired state →
 * what the kernel really has → reconcile both ways → only then answer operations and take commands.
 */
import { mkdirSync } from 'node:fs';
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { FORGETTING_LIMITS, startForgetting } from '../forgetting.ts';
import { acquire, step } from '../scope.ts';

import type { EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { LayerDigest, SandboxId } from '#bus/ids.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import type { Effect as ActorEffect } from '#actors/kernel/definition.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import { sandboxDefinition } from '#actors/sandbox/sandbox.definition.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { ContainerBackend } from '../../backends/container/backend.ts';
import { cgroupNameOf, type Config, pathsOf, shardsOf } from '../../config.ts';
import { type ImageMounter, ImageMounts } from '../../images/mounts.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { Log } from '../../log/log.ts';
import { projectRoot } from '../../project-root.ts';
import { ActorDriver } from '../driver/driver.ts';
import { Admission } from './admission.ts';
import { startBeats } from './beats.ts';
import { nodeCapacity } from './capacity.ts';
import { consumeEdgeCommands } from './commands.ts';
import { sandboxEffectRunner } from './effects.ts';
import { LauncherHolder } from './launcher-holder.ts';
import { Lease } from './lease.ts';
import { EDGE_LIMITS } from './limits.ts';
import { serveOps } from './ops.ts';
import { sweepLogs } from './sweep.ts';

export type EdgeOptions = {
  readonly config: Config;
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly queue: CommandQueue;
  readonly log: Log;
  /** Another process owns this node's name now. */
  readonly onSuperseded: (message: string) => void;
};

export interface Edge {
  /** Ends every sandbox, then the launcher, and gives the name back: what `dsec up` does at Ctrl-C. */
  drain(reportLeft: (count: number) => void): Promise<void>;
  readonly liveSandboxes: () => number;
}

/** Everything an Edge holds, released in reverse order when the scope ends. Live sandboxes are not released: they go on. */
export const startEdge = (o: EdgeOptions): Effect.Effect<Edge, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { config, eventLog, log } = o;
    const paths = pathsOf(config);
    for (const dir of [paths.sandboxes, paths.trash, paths.sockets, paths.runDir]) mkdirSync(dir, { recursive: true, mode: 0o711 });
    const clock = systemClock;
    const capacity = nodeCapacity(config);
    const admission = new Admission(capacity);
    let draining = false;

    // Identity -------------------------------------------------------------------------------------------------
    const edgeDriver = yield* acquire(
      () =>
        new ActorDriver<EdgeState, EdgeCommand, EdgeEvent, ActorEffect>({
          definition: edgeDefinition,
          eventLog,
          clock,
          log,
          armDeadlines: false, // a lease that runs out is for watchers to see, not for its holder
          runEffect: () => Promise.resolve(null),
          deadlineCommand: () => {
            throw new Error('an Edge does not declare itself lost');
          },
        }),
      (driver) => driver.close(),
    );
    const lease = yield* acquire(
      () =>
        new Lease({
          edge: config.edgeName,
          driver: edgeDriver,
          capacity,
          clock,
          log,
          onFenced: () => void backend.freezeAll(true),
          onRenewed: () => void backend.freezeAll(false),
          onSuperseded: (error) => o.onSuperseded(error.message),
        }),
      (l) => l.stop(),
    );
    const generation = yield* step(() => lease.acquire());
    log.info('edge.registered', { generation, edge: config.edgeName, capacity });

    // Node runtime ---------------------------------------------------------------------------------------------
    const launcherOptions = {
      runDir: paths.runDir,
      cgroupName: cgroupNameOf(config),
      trashDir: paths.trash,
      epoch: generation,
      binDir: `${projectRoot()}/build/native`,
    };
    const store = new PosixLayerStore({ dir: paths.layers });
    const holder = yield* acquire(
      () => new LauncherHolder(launcherOptions, log, (client) => images.remount(mounterOf(async () => client))),
      (h) => h.close(false),
    );
    const images = new ImageMounts({
      pathOf: (digest) => store.pathOf(digest),
      mounter: mounterOf(() => holder.get()),
      onUnmountFailed: (digest, error) => log.debug('image.kept', { digest, message: (error as Error).message }),
    });
    const backend: ContainerBackend = yield* acquire(
      () => new ContainerBackend({ sandboxesDir: paths.sandboxes, socketsDir: paths.sockets, launcher: () => holder.get(), images, clock, log }),
      (b) => b.close(),
    );
    yield* step(() => holder.get());

    // Sandboxes ------------------------------------------------------------------------------------------------
    const live = new Map<SandboxId, SandboxState>();
    const emptied = { notify: () => {} };
    const driver = yield* acquire(
      () =>
        new ActorDriver<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect>({
          definition: sandboxDefinition,
          eventLog,
          clock,
          log,
          runEffect: sandboxEffectRunner(backend),
          deadlineCommand: (deadline, state) => ({
            type: 'DeadlinePassed',
            kind: deadline.kind as 'total' | 'idle' | 'transition',
            version: deadline.version,
            activityAt: backend.activityAt(state.id) as TimestampMs,
          }),
          dueAt: (deadline, state) =>
            deadline.kind === 'idle' && state.spec.lives.idleMs !== null
              ? Math.max(deadline.at, backend.activityAt(state.id) + state.spec.lives.idleMs)
              : deadline.at,
          onAdopted: (state, stored, over) => {
            log.debug('sandbox.committed', { actorId: state.id, version: stored.commit.version, status: state.status, commandId: stored.commit.commandId });
            if (!over) {
              live.set(state.id, state);
              return;
            }
            live.delete(state.id);
            admission.release(state.id);
            if (live.size === 0) emptied.notify();
            setTimeout(() => driver.evict(stored.address), EDGE_LIMITS.logRetentionMs).unref();
          },
        }),
      (d) => d.close(),
    );
    yield* step(() => rehydrate());

    async function rehydrate(): Promise<void> {
      const startedAt = performance.now();
      const found = (await Promise.all(shardsOf(config).map((shard) => eventLog.lastOfEach({ shard, kind: 'sandbox', home: config.edgeName })))).flat();
      const desired = found.filter(isLive);
      for (const { commit } of desired) {
        const state = sandboxDefinition.parseState(commit.state);
        admission.restore(state.id, state.spec, state.slot);
        images.restore(state.id, state.spec.layers);
      }
      const present = new Set(await backend.present());
      for (const stored of desired) driver.adopt(stored);
      const known = new Set(desired.map((s) => s.address.id));
      const unknown = [...present].filter((id) => !known.has(id));
      await Promise.all(unknown.map((id) => backend.destroyUnknown(id)));
      log.info('edge.rehydrated', {
        sandboxes: desired.length,
        present: present.size,
        orphansEnded: unknown.length,
        durationMs: Math.round(performance.now() - startedAt),
      });
    }

    // Doors ----------------------------------------------------------------------------------------------------
    const accepting = () => !draining && !lease.fenced;
    yield* acquire(
      () =>
        serveOps({
          edge: config.edgeName,
          connection: o.connection,
          driver,
          eventLog,
          log,
          fenced: () => lease.fenced,
          live: (id) => backend.chronus(id),
          ended: (state) => backend.endedChronus(state),
        }),
      (ops) => ops.close(),
    );
    yield* acquire(
      () =>
        consumeEdgeCommands({
          edge: config.edgeName,
          generation,
          connection: o.connection,
          queue: o.queue,
          driver,
          admission,
          clock,
          log,
          laneCount: config.laneCount,
          accepting,
          missingLayer: (spec) => spec.layers.find((digest) => !store.has(digest)) ?? null,
        }),
      (consumer) => consumer.close(),
    );
    const runningByProject = (): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const { project } of live.values()) counts[project] = (counts[project] ?? 0) + 1;
      return counts;
    };
    yield* acquire(
      () =>
        startBeats({
          edge: config.edgeName,
          generation,
          connection: o.connection,
          capacity,
          used: () => admission.used(),
          accepting,
          running: runningByProject,
          clock,
        }),
      (beats) => beats.stop(),
    );
    yield* acquire(
      () => sweepLogs({ sandboxesDir: paths.sandboxes, trashDir: paths.trash, isLive: (id) => live.has(id as SandboxId), clock, log }),
      (sweeper) => sweeper.stop(),
    );

    yield* acquire(
      () =>
        startForgetting({
          eventLog,
          shards: shardsOf(config),
          actors: { kind: 'sandbox', home: config.edgeName },
          forgettableAt: ({ commit }) => {
            const { status, endedAt, forget } = commit.state as unknown as SandboxState;
            if (!ENDED_STATUSES.has(status) || endedAt === null) return null;
            return endedAt + (forget ? EDGE_LIMITS.logRetentionMs : FORGETTING_LIMITS.auditRetentionMs);
          },
          clock,
          log,
        }),
      (forgetting) => forgetting.stop(),
    );

    return {
      liveSandboxes: () => live.size,
      drain: async (reportLeft) => {
        draining = true;
        const reason = 'edge_shutdown';
        const empty = new Promise<void>((resolve) => {
          emptied.notify = resolve;
          if (live.size === 0) resolve();
        });
        for (const { id, project } of live.values()) {
          const commandId = `${id}:edge_shutdown:${generation}`;
          void driver.submit(
            sandboxAddress(project, id),
            { type: 'StopSandbox', reason },
            { commandId, correlationId: commandId, principal: 'platform', at: clock.now() },
          );
        }
        const ticker = setInterval(() => reportLeft(live.size), 500);
        await empty;
        clearInterval(ticker);
        await lease.retire();
        await holder.close(true);
      },
    } satisfies Edge;
  });

/** The launcher's side of mounted images, by whichever client is at hand. */
const mounterOf = (launcher: () => Promise<LauncherClient>): ImageMounter => ({
  mountImage: async (digest, path) => (await launcher()).mountImage(digest, path),
  umountImage: async (digest) => (await launcher()).umountImage(digest),
  listImages: async () => (await (await launcher()).listImages()) as LayerDigest[],
});

const isLive = ({ commit }: StoredCommit): boolean => !ENDED_STATUSES.has((commit.state as unknown as SandboxState).status);
