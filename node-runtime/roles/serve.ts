/**
 * One process that plays one or more roles, each on its own connection with its own key.
 *
 * Started by hand, by systemd or by `dsec up`; then the parent's IPC channel carries `ready` and `drain`, and its end means
 * that nobody watches any more: the process ends, live sandboxes go on.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NatsConnection, nkeys } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { DsecError, toWireError } from '#bus/errors.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { DEFAULT_LIMITS, Limits } from '#bus/sandbox/spec.ts';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import type { ClientHands } from '#actors/ports/client-hands.ts';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import type { ClientUser } from '#infra/nats/config.ts';
import { runProjection, SandboxProjection } from '#adapters/sqlite/mod.ts';
import type { BusCredentials } from '../bus/connect.ts';
import { connectBus } from '../bus/connect.ts';
import { whenBusAnswers } from '../bus/when-answers.ts';
import { type Config, pathsOf, shardsOf } from '../config.ts';
import { knowing, LayerCatalog } from '../images/catalog.ts';
import { createLog, type Log } from '../log/log.ts';
import { findSnapshot, listSnapshots, removeSnapshot } from '../snapshots/names.ts';
import { PLATFORM_VERSION } from '../version.ts';
import { serveApi } from './apiserver/apiserver.ts';
import { Decisions } from './apiserver/decisions.ts';
import { APISERVER_LIMITS } from './apiserver/limits.ts';
import { FleetView } from './apiserver/fleet.ts';
import { Rates } from './apiserver/rates.ts';
import { createVerbs } from './apiserver/verbs.ts';
import { WaitingCreates } from './apiserver/waiting-creates.ts';
import { type Edge, startEdge } from './edge/edge.ts';
import { FORGETTING_LIMITS, startForgetting } from './forgetting.ts';
import { EdgeStates } from './edge-states.ts';
import { LostEdges } from './placement/lost-edges.ts';
import { serveCallout } from './iam/callout.ts';
import { ClientList } from './iam/client-list.ts';
import { startIam } from './iam/iam.ts';
import { Jobs } from './jobs/jobs.ts';
import { openLayerStore } from './layer-store.ts';
import { Kicker } from './iam/kick.ts';
import type { Projects } from './iam/projects.ts';
import { createIamVerbs } from './iam/verbs.ts';
import { type Authenticate, authenticateBy, everybody } from './identity.ts';
import { ProjectFeed } from './project-feed.ts';
import { Placement } from './placement/placement.ts';
import { PLACEMENT_LIMITS } from './placement/limits.ts';
import { QuotaHolder } from './placement/quota-holder.ts';
import { Ops } from '../ops/ops.ts';
import { showCounts, showEdge, showProjection } from '../ops/role-gauges.ts';
import type { RoleOps } from '../ops/role-ops.ts';
import { startTracing, type Tracing } from '../tracing/start.ts';
import { acquire, open, step } from './scope.ts';
import { Watcher } from './watcher/watcher.ts';

export const SERVED_ROLES = ['apiserver', 'iam', 'placement', 'watcher', 'jobs', 'edge'] as const;
export type ServedRole = (typeof SERVED_ROLES)[number];

/** Messages between `dsec up` and its roles. */
export type FromRole =
  | { readonly type: 'ready' }
  | { readonly type: 'draining'; readonly left: number }
  | { readonly type: 'drained' }
  /** Who may connect: the single machine's bus is configured from it. */
  | { readonly type: 'clients'; readonly clients: readonly ClientUser[] }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };
export type ToRole = { readonly type: 'drain' };

const serversOf = (config: Config): string[] => {
  if (!config.servers) throw DsecError.of('INVALID_ARGUMENT', 'configuration: servers is missing; name the bus, or start everything with dsec up');
  return config.servers.split(',').map((s) => s.trim());
};

/** The role's key when the data directory has one; a bus without accounts needs none. */
const credentialsOf = (config: Config, role: ServedRole): BusCredentials | undefined => {
  const { credentials } = pathsOf(config);
  const ofNode = role === 'edge' ? readSeed(join(credentials, `edge-${config.edgeName}.nk`)) : undefined;
  const nkeySeed = ofNode ?? readSeed(join(credentials, `role-${role}.nk`));
  return nkeySeed === undefined ? undefined : { nkeySeed };
};

const readSeed = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown;
  }
};

type Bus = { readonly connection: NatsConnection; readonly jetStream: JetStreamBus };

const openBus = (config: Config, role: ServedRole, ops: RoleOps): Effect.Effect<Bus, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const connection = yield* acquire(
      () => connectBus({ servers: serversOf(config), credentials: credentialsOf(config, role) }, `dsec-${role}`, log),
      (c) => c.close(),
    );
    const jetStream = yield* acquire(
      () =>
        connectJetStream(connection, {
          readFrom: config.replicas > 1 ? 'leader' : 'direct',
          // What a placement had taken when it died goes to another one after this; no client should wait half a minute for it.
          ...(role === 'placement' ? { ackWaitMs: PLACEMENT_LIMITS.ackWaitMs } : {}),
          report: (line) => ops.report(line),
        }),
      (js) => js.close(),
    );
    const { busDuplicateWindowMs: duplicateWindowMs } = config;
    const settings = { shards: shardsOf(config), replicas: config.replicas, ...(duplicateWindowMs === undefined ? {} : { duplicateWindowMs }) };
    yield* step(() => whenBusAnswers(() => jetStream.ensureStreams(settings), log));
    return { connection, jetStream: ops.watch(jetStream) };
  });

const apiserver = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'apiserver', ops);
    const paths = pathsOf(config);
    const shards = shardsOf(config);
    const projection = yield* acquire(
      () => SandboxProjection.open(join(paths.projections, 'sandboxes.sqlite')),
      (p) => p.close(),
    );
    const clock = clockWithOffset(config.clockOffsetMs);
    const rates = new Rates(clock);
    ops.onHeard((stored) => rates.heard(stored));
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
    yield* step(() => projection.waitFor(runner.startedAt, PROJECTION_START_MS).catch(() => log.warn('projection.behind', {})));
    const { waitingPerProject, waitingPerLane, retryAfterMs, waitingForgottenMs } = APISERVER_LIMITS;
    const waiting = new WaitingCreates(
      { perProject: waitingPerProject, perLane: waitingPerLane, retryAfterMs, forgottenMs: waitingForgottenMs },
      clockWithOffset(config.clockOffsetMs),
    );
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

const placement = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'placement', ops);
    const quota = yield* acquire(
      () => new QuotaHolder({ connection, clock: clockWithOffset(config.clockOffsetMs), log, holder: `placement-${randomBytes(6).toString('hex')}` }),
      (q) => q.close(),
    );
    const counts = { laneCount: config.laneCount, shardCount: config.shardCount };
    const role = yield* acquire(
      () =>
        new Placement({
          quota,
          connection,
          eventLog: jetStream.eventLog,
          queue: jetStream.commandQueue,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
          ...counts,
        }),
      (p) => p.close(),
    );
    yield* step(() => role.start());
    yield* acquire(
      () =>
        LostEdges.start({
          connection,
          eventLog: jetStream.eventLog,
          queue: jetStream.commandQueue,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
          laneCount: config.laneCount,
        }),
      (lost) => lost.close(),
    );
    yield* acquire(
      () =>
        startForgetting({
          eventLog: jetStream.eventLog,
          shards: shardsOf(config),
          actors: { kind: 'request', home: '_' },
          forgettableAt: ({ commit }) => (commit.state as unknown as RequestState).keyExpiresAt + FORGETTING_LIMITS.auditRetentionMs,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
        }),
      (forgetting) => forgetting.stop(),
    );
    return null;
  });

const iam = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'iam', ops);
    const clock = clockWithOffset(config.clockOffsetMs);
    const shards = shardsOf(config);
    const { eventLog } = jetStream;
    const kicker: { current: Kicker | null } = { current: null };
    const clients = new ClientList((list) => process.send?.({ type: 'clients', clients: list } satisfies FromRole));
    const { projects, lending } = yield* startIam({
      connection,
      eventLog,
      shards,
      clock,
      clockSkewMs: config.clockSkewMs,
      log,
      root: { project: config.project, owner: rootOwnerOf(config) },
      onChange: (directory) => {
        clients.changed(directory);
        kicker.current?.changed();
      },
    });
    const verbs = createIamVerbs({ projects, lending, eventLog, shards, clock });
    const issuer = keyIn(config, 'callout-issuer.nk');
    if (issuer) {
      const system = keyIn(config, 'system.nk');
      const kicking = system ? yield* kickerOf(config, system.seed, projects, log) : null;
      kicker.current = kicking;
      yield* acquire(
        () => serveCallout({ connection, directory: projects.directory, clock, log, issuer }),
        (callout) => callout.close(),
      );
    }
    const authenticate = credentialsOf(config, 'iam') ? authenticateBy(projects.directory, clock) : everybody;
    yield* acquire(
      () => serveApi({ connection, verbs, log, authenticate, service: 'iam' }),
      (api) => api.close(),
    );
    return null;
  });

/** Who asks, by what this process has heard of projects; on a bus without accounts nobody can be told apart. */
const authenticateOf = (
  config: Config,
  role: ServedRole,
  log: Log,
  connection: NatsConnection,
  jetStream: JetStreamBus,
): Effect.Effect<Authenticate, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (!credentialsOf(config, role)) return everybody;
    const feed = yield* acquire(
      () => ProjectFeed.open({ connection, eventLog: jetStream.eventLog, log }),
      (f) => f.close(),
    );
    return authenticateBy(feed.directory, clockWithOffset(config.clockOffsetMs));
  });

const kickerOf = (config: Config, nkeySeed: string, { directory }: Projects, log: Log): Effect.Effect<Kicker, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const system = yield* acquire(
      () => connectBus({ servers: serversOf(config), credentials: { nkeySeed } }, 'dsec-iam-system', log),
      (c) => c.close(),
    );
    return yield* acquire(
      () => new Kicker(system, directory, log),
      (k) => k.close(),
    );
  });

const keyIn = (config: Config, file: string): { seed: string; publicKey: string } | null => {
  const seed = readSeed(join(pathsOf(config).credentials, file));
  return seed === undefined ? null : { seed, publicKey: nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey() };
};

/** The key that the platform wrote into its first context file. */
const rootOwnerOf = (config: Config): { name: string; publicKey: string } | null => {
  const key = keyIn(config, `client-${config.project}.owner.nk`);
  return key && { name: 'owner', publicKey: key.publicKey };
};

const oneEdge = (config: Config, ops: RoleOps): Effect.Effect<Edge, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'edge', ops);
    const onSuperseded = (message: string) => {
      log.error('edge.superseded', { message });
      process.exit(SUPERSEDED_EXIT);
    };
    const onLost = (message: string) => {
      log.error('edge.lost', { message });
      process.exit(LOST_EXIT);
    };
    const { eventLog, commandQueue: queue, commandRecords: records } = jetStream;
    const edge = yield* startEdge({ config, connection, eventLog, queue, records, layers: jetStream, log, onSuperseded, onLost });
    showEdge(ops, () => edge.look());
    return edge;
  });

const watcher = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'watcher', ops);
    const role = yield* acquire(
      () =>
        Watcher.start({
          connection,
          eventLog: jetStream.eventLog,
          isConnected: () => jetStream.isConnected,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
        }),
      (w) => w.close(),
    );
    showCounts(ops, 'watchedEdges', () => role.counts());
    return null;
  });

/** What the program lends to its roles: they may not know the SDK, the program does. */
export type Lent = { readonly hands: (connection: NatsConnection) => ClientHands };

const jobs = (config: Config, ops: RoleOps, { hands }: Lent): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'jobs', ops);
    const clock = clockWithOffset(config.clockOffsetMs);
    const authenticate = yield* authenticateOf(config, 'jobs', log, connection, jetStream);
    const role = yield* acquire(
      () => new Jobs({ connection, eventLog: jetStream.eventLog, clock, log, shards: shardsOf(config), hands: hands(connection), authenticate }),
      (j) => j.close(),
    );
    role.start();
    showCounts(ops, 'heldActors', () => role.held());
    return null;
  });

/** With the null backend one process may host a whole fleet. */
const edge = (config: Config, ops: RoleOps): Effect.Effect<Pick<Edge, 'drain'>, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (config.backend !== 'null' || config.nullEdges === 1) return yield* oneEdge(config, ops);
    const edges: Edge[] = [];
    for (let n = 0; n < config.nullEdges; n += 1) edges.push(yield* oneEdge({ ...config, edgeName: `${config.edgeName}-${n}` as Config['edgeName'] }, ops));
    return { drain: async (reportLeft) => void (await Promise.all(edges.map((one) => one.drain(reportLeft)))) };
  });

/** Exit code of an Edge whose name another process has taken; its supervisor must not restart it. */
export const SUPERSEDED_EXIT = 77;

/** Exit code of an Edge that was declared lost: it is started again, and registers as a new generation. */
export const LOST_EXIT = 75;

/** How long an apiserver holds back `ready` for its projection. */
const PROJECTION_START_MS = 30_000;

const program = (role: ServedRole, config: Config, lent: Lent, process: Ops): Effect.Effect<Pick<Edge, 'drain'> | null, unknown, Scope.Scope> => {
  const ops = process.role(role, createLog(role, config.logLevel));
  if (role === 'apiserver') return apiserver(config, ops);
  if (role === 'watcher') return watcher(config, ops);
  if (role === 'iam') return iam(config, ops);
  if (role === 'jobs') return jobs(config, ops, lent);
  return role === 'placement' ? placement(config, ops) : edge(config, ops);
};

/** Plays the roles until told to end. Resolves with the exit code. */
export const serve = async (roles: readonly ServedRole[], config: Config, lent: Lent): Promise<number> => {
  const tell = (message: FromRole) => process.send?.(message);
  const log = createLog(roles.join('+'), config.logLevel);
  const ended = endSignal();
  const opened: { value: Pick<Edge, 'drain'> | null; close: () => Promise<void> }[] = [];
  const pidFile = join(config.runDir, `${roles.join('+')}.pid`);
  let ops: Ops | undefined;
  let tracing: Tracing | undefined;
  try {
    tracing = await startTracing(config.traces, `dsec-${roles.join('+')}`);
    ops = await Ops.open(roles, config, log);
    for (const role of roles) opened.push(await open(program(role, config, lent, ops)));
    writeFileSync(pidFile, `${process.pid}\n`);
    ops.serving();
    log.info('role.ready', { commands: COMMANDS_STREAM });
    tell({ type: 'ready' });
    const how = await ended;
    ops.ending();
    if (how === 'drain') {
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
    await ops?.close();
    await tracing?.close().catch((thrown: unknown) => log.warn('tracing.not_flushed', { message: (thrown as Error).message }));
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
