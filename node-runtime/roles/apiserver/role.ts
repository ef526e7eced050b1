/** The apiserver as a process has it: its projection, its view of the fleet, its verbs, opened in order. */
import { join } from 'node:path';
import { Effect, type Scope } from 'effect';
import { toWireError } from '#bus/errors.ts';
import { DEFAULT_LIMITS, Limits } from '#bus/sandbox/spec.ts';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { runProjection, SandboxProjection } from '#adapters/sqlite/mod.ts';
import { type Config, pathsOf, shardsOf } from '../../config.ts';
import { knowing, LayerCatalog } from '../../images/catalog.ts';
import { showProjection } from '../../ops/role-gauges.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { findSnapshot, listSnapshots, removeSnapshot } from '../../snapshots/names.ts';
import { PLATFORM_VERSION } from '../../version.ts';
import { authenticateOf } from '../authenticate.ts';
import { EdgeStates } from '../edge-states.ts';
import { openLayerStore } from '../layer-store.ts';
import { openBus } from '../open-bus.ts';
import type { SharedTails } from '../shared-tails.ts';
import { acquire, step } from '../scope.ts';
import { serveApi } from './apiserver.ts';
import { Decisions } from './decisions.ts';
import { FleetView } from './fleet.ts';
import { APISERVER_LIMITS } from './limits.ts';
import { Rates } from './rates.ts';
import { createVerbs } from './verbs.ts';
import { WaitingCreates } from './waiting-creates.ts';

export const apiserverRole = (config: Config, ops: RoleOps, tails: SharedTails): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'apiserver', ops, tails);
    const paths = pathsOf(config);
    const shards = shardsOf(config);
    const projection = yield* acquire(
      () => SandboxProjection.open(join(paths.projections, 'sandboxes.sqlite')),
      (p) => p.close(),
    );
    const clock = clockWithOffset(config.clockOffsetMs);
    const rates = new Rates(clock);
    const { waitingPerProject, waitingPerLane, retryAfterMs, waitingForgottenMs } = APISERVER_LIMITS;
    const waiting = new WaitingCreates(
      { perProject: waitingPerProject, perLane: waitingPerLane, retryAfterMs, forgottenMs: waitingForgottenMs },
      clockWithOffset(config.clockOffsetMs),
    );
    ops.onHeard((stored) => {
      rates.heard(stored);
      waiting.heard(stored.commit);
    });
    const runner = yield* acquire(
      () =>
        runProjection({
          projection,
          eventLog: jetStream.eventLog,
          shards,
          onError: (e) => log.error('projection.failed', { message: toWireError(e).message }),
        }),
      (r) => r.close(),
    );
    showProjection(ops, { shards, eventLog: jetStream.eventLog, asOf: () => projection.asOf() });
    // Lists start where the log is; a file that is built anew from a long log may take longer, and says so by `asOf`.
    yield* step(() => projection.waitFor(runner.startedAt, APISERVER_LIMITS.projectionStartMs).catch(() => log.warn('projection.behind', {})));
    const decisions = yield* acquire(
      () => new Decisions(connection, jetStream.commandQueue, (commandId) => waiting.leave(commandId)),
      (d) => d.close(),
    );
    const losses = yield* acquire(
      () => EdgeStates.open({ connection, eventLog: jetStream.eventLog, log }),
      (edges) => edges.close(),
    );
    const fleet = yield* acquire(
      () =>
        new FleetView({
          connection,
          clock,
          root: config.project,
          edges: losses,
          rates,
          commandsStored: () => jetStream.backlog.stored(),
        }),
      (view) => view.close(),
    );
    const { store } = yield* acquire(
      () => openLayerStore(config, jetStream, log),
      (layers) => layers.close(),
    );
    const catalog = new LayerCatalog(store);
    const verbs = createVerbs({
      eventLog: jetStream.eventLog,
      projection,
      decisions,
      losses,
      waiting,
      fleet,
      resolveStack: (reference) => knowing(store, () => catalog.resolveStack(reference)),
      snapshots: {
        find: (project, id) => knowing(store, () => findSnapshot(store, project, id)),
        list: (project) => listSnapshots(store, project),
        remove: (project, id) => removeSnapshot(store, project, id),
      },
      defaultLimits: { ...Limits.parse(DEFAULT_LIMITS), diskMiB: config.sandboxDiskMiB as Limits['diskMiB'] },
      clock: clockWithOffset(config.clockOffsetMs),
      shards,
      laneCount: config.laneCount,
      platformVersion: PLATFORM_VERSION,
    });
    const authenticate = yield* authenticateOf(config, 'apiserver', log, connection, jetStream);
    yield* acquire(
      () => serveApi({ connection, verbs, log, authenticate }),
      (api) => api.close(),
    );
    return null;
  });
