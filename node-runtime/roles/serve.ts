/**
 * One process that plays one or more roles, each on its own connection with its own key.
 *
 * Started by hand, by systemd or by `dsec up`; then the parent's IPC channel carries `ready` and `drain`, and its end means
 * that nobody watches any more: the process ends, live sandboxes go on.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { DsecError, toWireError } from '#bus/errors.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { DEFAULT_LIMITS, Limits } from '#bus/sandbox/spec.ts';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { runProjection, SandboxProjection } from '#adapters/sqlite/mod.ts';
import type { BusCredentials } from '../bus/connect.ts';
import { connectBus } from '../bus/connect.ts';
import { type Config, pathsOf, shardsOf } from '../config.ts';
import { LayerCatalog } from '../images/catalog.ts';
import { createLog, type Log } from '../log/log.ts';
import { PLATFORM_VERSION } from '../version.ts';
import { serveApi } from './apiserver/apiserver.ts';
import { Decisions } from './apiserver/decisions.ts';
import { createVerbs } from './apiserver/verbs.ts';
import { type Edge, startEdge } from './edge/edge.ts';
import { FORGETTING_LIMITS, startForgetting } from './forgetting.ts';
import { Placement } from './placement/placement.ts';
import { acquire, open, step } from './scope.ts';

export const SERVED_ROLES = ['apiserver', 'placement', 'edge'] as const;
export type ServedRole = (typeof SERVED_ROLES)[number];

/** Messages between `dsec up` and its roles. */
export type FromRole =
  | { readonly type: 'ready' }
  | { readonly type: 'draining'; readonly left: number }
  | { readonly type: 'drained' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };
export type ToRole = { readonly type: 'drain' };

const serversOf = (config: Config): string[] => {
  if (!config.servers) throw DsecError.of('INVALID_ARGUMENT', 'configuration: servers is missing; name the bus, or start everything with dsec up');
  return config.servers.split(',').map((s) => s.trim());
};

/** The role's key when the data directory has one; a bus without accounts needs none. */
const credentialsOf = (config: Config, role: ServedRole): BusCredentials | undefined => {
  try {
    return { nkeySeed: readFileSync(join(pathsOf(config).credentials, `role-${role}.nk`), 'utf8').trim() };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown;
  }
};

type Bus = { readonly connection: NatsConnection; readonly jetStream: JetStreamBus };

const openBus = (config: Config, role: ServedRole, log: Log): Effect.Effect<Bus, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const connection = yield* acquire(
      () => connectBus({ servers: serversOf(config), credentials: credentialsOf(config, role) }, `dsec-${role}`, log),
      (c) => c.close(),
    );
    const jetStream = yield* acquire(
      () => connectJetStream(connection, { report: (line) => log.warn('bus.report', { detail: line }) }),
      (js) => js.close(),
    );
    const { busDuplicateWindowMs: duplicateWindowMs } = config;
    yield* step(() => jetStream.ensureStreams({ shards: shardsOf(config), replicas: 1, ...(duplicateWindowMs === undefined ? {} : { duplicateWindowMs }) }));
    return { connection, jetStream };
  });

const apiserver = (config: Config, log: Log): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { connection, jetStream } = yield* openBus(config, 'apiserver', log);
    const paths = pathsOf(config);
    const shards = shardsOf(config);
    const projection = yield* acquire(
      () => SandboxProjection.open(join(paths.projections, 'sandboxes.sqlite')),
      (p) => p.close(),
    );
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
    // Lists start where the log is; a file that is built anew from a long log may take longer, and says so by `asOf`.
    yield* step(() => projection.waitFor(runner.startedAt, PROJECTION_START_MS).catch(() => log.warn('projection.behind', {})));
    const decisions = yield* acquire(
      () => new Decisions(connection, jetStream.commandQueue),
      (d) => d.close(),
    );
    const catalog = new LayerCatalog(new PosixLayerStore({ dir: paths.layers }));
    const verbs = createVerbs({
      eventLog: jetStream.eventLog,
      projection,
      decisions,
      resolveLayer: (reference) => catalog.resolve(reference),
      defaultLimits: { ...Limits.parse(DEFAULT_LIMITS), diskMiB: config.sandboxDiskMiB as Limits['diskMiB'] },
      clock: systemClock,
      shards,
      laneCount: config.laneCount,
      platformVersion: PLATFORM_VERSION,
    });
    yield* acquire(
      () => serveApi({ connection, verbs, log }),
      (api) => api.close(),
    );
    return null;
  });

const placement = (config: Config, log: Log): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { connection, jetStream } = yield* openBus(config, 'placement', log);
    const role = yield* acquire(
      () => new Placement({ connection, eventLog: jetStream.eventLog, queue: jetStream.commandQueue, clock: systemClock, log, laneCount: config.laneCount }),
      (p) => p.close(),
    );
    yield* step(() => role.start());
    yield* acquire(
      () =>
        startForgetting({
          eventLog: jetStream.eventLog,
          shards: shardsOf(config),
          actors: { kind: 'request', home: '_' },
          forgettableAt: ({ commit }) => (commit.state as unknown as RequestState).keyExpiresAt + FORGETTING_LIMITS.auditRetentionMs,
          clock: systemClock,
          log,
        }),
      (forgetting) => forgetting.stop(),
    );
    return null;
  });

const edge = (config: Config, log: Log): Effect.Effect<Edge, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { connection, jetStream } = yield* openBus(config, 'edge', log);
    const onSuperseded = (message: string) => {
      log.error('edge.superseded', { message });
      process.exit(SUPERSEDED_EXIT);
    };
    return yield* startEdge({ config, connection, eventLog: jetStream.eventLog, queue: jetStream.commandQueue, log, onSuperseded });
  });

/** Exit code of an Edge whose name another process has taken; its supervisor must not restart it. */
export const SUPERSEDED_EXIT = 77;

/** How long an apiserver holds back `ready` for its projection. */
const PROJECTION_START_MS = 30_000;

const program = (role: ServedRole, config: Config): Effect.Effect<Edge | null, unknown, Scope.Scope> => {
  const log = createLog(role, config.logLevel);
  if (role === 'apiserver') return apiserver(config, log);
  return role === 'placement' ? placement(config, log) : edge(config, log);
};

/** Plays the roles until told to end. Resolves with the exit code. */
export const serve = async (roles: readonly ServedRole[], config: Config): Promise<number> => {
  const tell = (message: FromRole) => process.send?.(message);
  const log = createLog(roles.join('+'), config.logLevel);
  const ended = endSignal();
  const opened: { value: Edge | null; close: () => Promise<void> }[] = [];
  const pidFile = join(config.runDir, `${roles.join('+')}.pid`);
  try {
    for (const role of roles) opened.push(await open(program(role, config)));
    writeFileSync(pidFile, `${process.pid}\n`);
    log.info('role.ready', { commands: COMMANDS_STREAM });
    tell({ type: 'ready' });
    if ((await ended) === 'drain') {
      for (const { value } of opened) await value?.drain((left) => tell({ type: 'draining', left }));
      tell({ type: 'drained' });
    }
    return 0;
  } catch (thrown) {
    const { code, message } = toWireError(thrown);
    log.error('role.failed', { code, message, stack: (thrown as Error).stack });
    tell({ type: 'failed', code, message });
    return 1;
  } finally {
    rmSync(pidFile, { force: true });
    for (const { close } of opened.reverse()) await close();
    log.info('role.ended', {});
  }
};

/** Whichever comes first: a signal, the parent's order to drain, or the parent's end. */
const endSignal = (): Promise<'drain' | 'end'> =>
  new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('end'));
    if (process.send) {
      process.on('SIGINT', () => {}); // the terminal's Ctrl-C reaches the whole group; the parent decides what it means
      process.on('message', (message: ToRole) => {
        if (message.type === 'drain') resolve('drain');
      });
      process.once('disconnect', () => resolve('end'));
    } else process.once('SIGINT', () => resolve('end'));
  });
