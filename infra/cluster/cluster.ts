/**
 * A whole cluster on one machine, from code: three nats-servers, two of each cluster role, N Edges on hosts of their own
 * (network namespaces) over one layer store. For tests, benchmarks, the demo and `npm run cluster`.
 *
 * Supervises; decides nothing. Every member is a process that may be killed at any time. @paper §3.2
 */
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { nkeyAuthenticator } from '@nats-io/nats-core';
import { Effect, type Scope } from 'effect';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName } from '#bus/ids.ts';
import { connectJetStream, busConnectionOptions } from '#adapters/jetstream/mod.ts';
import { type Config, type ConfigInput, loadConfig, shardsOf } from '#runtime/config.ts';
import type { Log } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { acquire, type Ending, openEndable, step } from '#runtime/roles/scope.ts';
import { SERVED_ROLES, type ServedRole } from '#runtime/roles/supervision.ts';
import { RoleChild } from '#runtime/roles/up/child.ts';
import { UP_LIMITS } from '#runtime/roles/up/limits.ts';
import { lockDataDir } from '#runtime/roles/up/lock.ts';
import { type BusServer, type ClusterBus, startClusterBus } from './bus.ts';
import { spreadLeaders, whenFormed } from './leaders.ts';
import { CLUSTER_LIMITS } from './limits.ts';
import { ClusterNetwork } from './network.ts';

/** Every role but the Edge: none of them keeps anything that another instance would need. */
const CLUSTER_ROLES = SERVED_ROLES.filter((role) => role !== 'edge');

export type ClusterOptions = {
  /** Everything lies below it: stores, keys, configurations, logs, data and run directories. Short, sockets lie in it. */
  readonly dir: string;
  readonly edges: number;
  /** 1 or 3; three by default. */
  readonly busServers?: 1 | 3;
  /** Instances of each cluster role; two by default. */
  readonly instances?: number;
  /** False: everything listens on loopback and the Edges share this machine's network. */
  readonly namespaces?: boolean;
  /** For every process. */
  readonly overrides?: Partial<ConfigInput>;
  /** For one process, by its name (`apiserver-1`, `edge-2`). */
  readonly overridesOf?: Readonly<Record<string, Partial<ConfigInput>>>;
  readonly restartMaxMs?: number;
  readonly log: Log;
  readonly onProgress?: (message: string) => void;
};

/** A process of the cluster. `pid` is that of the one that runs now. */
export type Member = { readonly name: string; readonly kind: 'bus' | ServedRole; readonly pid: () => number | undefined };

export interface Cluster {
  readonly contextFile: string;
  /** Configuration for the commands of operators (`DSEC_CONFIG`). */
  readonly operatorConfig: string;
  readonly urls: readonly string[];
  readonly keys: ClusterBus['keys'];
  readonly edges: readonly EdgeName[];
  readonly members: readonly Member[];
  /** Configuration of one member, as it was given to it. */
  configOf(name: string): Config;
  member(name: string): Member;
  /** Pulls a host's network cable, or plugs it in again. */
  setLink(edge: EdgeName, up: boolean): Promise<void>;
  /** Lame duck and restart of one server of the bus. */
  rollBus(name: string): Promise<void>;
  spreadLeaders(): Promise<void>;
  /** Ends every sandbox, then every process. Repeatable. */
  close(): Promise<void>;
  /** Ends every process but launchers and sandboxes. */
  closeKeepingSandboxes(): Promise<void>;
}

export const startCluster = (options: ClusterOptions): Promise<Cluster> => openEndable((ending) => program(options, ending));

type Parts = Omit<Cluster, 'close' | 'closeKeepingSandboxes'>;
type Started = { readonly name: string; readonly config: Config; readonly child: RoleChild; readonly role: ServedRole };

const program = (o: ClusterOptions, ending: Ending): Effect.Effect<Parts, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (process.getuid?.() !== 0)
      return yield* Effect.fail(DsecError.of('HOST_UNFIT', 'a cluster makes namespaces, mounts and control groups: run it as root'));
    const progress = o.onProgress ?? (() => {});
    mkdirSync(o.dir, { recursive: true, mode: 0o711 });
    yield* acquire(
      () => lockDataDir(o.dir),
      (unlock) => unlock(),
    );
    const edges = Array.from({ length: o.edges }, (_, i) => `edge-${i + 1}` as EdgeName);
    const network = yield* networkOf(o, edges);
    progress(`starting ${o.busServers ?? CLUSTER_LIMITS.busServers} nats-servers`);
    const bus = yield* busOf(o, network?.hostAddress ?? '127.0.0.1', edges);
    progress('waiting for streams and their leaders');
    yield* step(() => prepareStreams(o, bus));
    progress('starting the cluster roles');
    const roles = yield* rolesOf(o, bus);
    progress(`starting ${edges.length} Edges`);
    const nodes = yield* edgesOf(o, bus, edges, network, ending);
    const operatorConfig = join(o.dir, 'operator.json');
    const forOperators = { ...baseConfig(o), credentialsDir: bus.credentialsDir, servers: bus.urls.join(',') };
    writeFileSync(operatorConfig, `${JSON.stringify(forOperators, null, 2)}\n`, { mode: 0o600 });
    return { operatorConfig, ...partsOf(bus, [...roles, ...nodes], edges, network) };
  });

const networkOf = ({ dir, namespaces = true }: ClusterOptions, edges: readonly EdgeName[]): Effect.Effect<ClusterNetwork | null, unknown, Scope.Scope> =>
  acquire(
    () => (namespaces && edges.length > 0 ? ClusterNetwork.create(dir, edges) : null),
    (network) => network?.close(),
  );

const baseConfig = ({ dir, overrides = {}, busServers = CLUSTER_LIMITS.busServers }: ClusterOptions, more: Partial<ConfigInput> = {}): Config =>
  loadConfig({ flags: { dataDir: join(dir, 'control'), ...sharedLayers(dir, overrides), replicas: busServers === 1 ? 1 : 3, ...overrides, ...more } });

/** One directory for all; with a bucket each has copies of its own. */
const sharedLayers = (dir: string, { layerStore }: Partial<ConfigInput>): Partial<ConfigInput> =>
  layerStore?.type === 'object' ? {} : { layersDir: join(dir, 'layers') };

const busOf = (o: ClusterOptions, host: string, edges: readonly EdgeName[]): Effect.Effect<ClusterBus, unknown, Scope.Scope> =>
  acquire(
    () => {
      const { project, busSyncIntervalMs: syncIntervalMs } = baseConfig(o);
      return startClusterBus({
        dir: join(o.dir, 'bus'),
        host,
        servers: o.busServers ?? CLUSTER_LIMITS.busServers,
        syncIntervalMs,
        edges,
        clients: [{ project, name: 'owner' }],
        projectRoot: projectRoot(),
        env: process.env,
        onEvent: (server, event) => o.log[event.type === 'ready' || event.type === 'stopped' ? 'info' : 'warn'](`bus.${event.type}`, { server, detail: event }),
      });
    },
    (bus) => bus.stop(),
  );

/** As the operator: the roles find everything as it must be, and need not wait for elections one after another. */
const prepareStreams = async (o: ClusterOptions, bus: ClusterBus): Promise<void> => {
  const config = baseConfig(o);
  const { busDuplicateWindowMs: duplicateWindowMs } = config;
  const settings = { shards: shardsOf(config), replicas: config.replicas, ...(duplicateWindowMs === undefined ? {} : { duplicateWindowMs }) };
  await asOperator(bus, async (nc) => {
    // Before there is a leader nobody answers at all: short waits, many questions.
    const jetStream = connectJetStream(nc, { requestTimeoutMs: CLUSTER_LIMITS.formingRequestMs });
    await whenFormed(() => jetStream.ensureStreams(settings));
    jetStream.close();
    if (bus.servers.length > 1)
      await spreadLeaders(
        nc,
        bus.servers.map(({ name }) => name),
      );
  });
};

const asOperator = async <T>(bus: ClusterBus, work: (nc: Awaited<ReturnType<typeof connect>>) => Promise<T>): Promise<T> => {
  const authenticator = nkeyAuthenticator(new TextEncoder().encode(bus.keys.roles.operator.nkeySeed));
  const nc = await whenFormed(() => connect({ ...busConnectionOptions([...bus.urls], 'dsec-cluster'), authenticator }));
  try {
    return await work(nc);
  } finally {
    await nc.close();
  }
};

const rolesOf = (o: ClusterOptions, bus: ClusterBus): Effect.Effect<Started[], unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const instances = Array.from({ length: o.instances ?? CLUSTER_LIMITS.roleInstances }, (_, i) => i + 1);
    const wanted = CLUSTER_ROLES.flatMap((role) => instances.map((n) => ({ role, name: `${role}-${n}` })));
    return yield* Effect.all(
      wanted.map(({ role, name }) => startedOf(o, bus, role, name, {}, undefined, (child) => child.stop())),
      { concurrency: 'unbounded' },
    );
  });

const edgesOf = (
  o: ClusterOptions,
  bus: ClusterBus,
  edges: readonly EdgeName[],
  network: ClusterNetwork | null,
  ending: Ending,
): Effect.Effect<Started[], unknown, Scope.Scope> =>
  Effect.all(
    edges.map((edgeName) =>
      startedOf(o, bus, 'edge', edgeName, { edgeName }, network?.prefixOf(edgeName), async (child) => {
        if (ending.drain && !(await child.drain((left) => o.onProgress?.(`${edgeName}: ending ${left} sandboxes`))))
          o.log.warn('edge.not_drained', { edgeName });
        await child.stop();
      }),
    ),
    { concurrency: 'unbounded' },
  );

const startedOf = (
  o: ClusterOptions,
  bus: ClusterBus,
  role: ServedRole,
  name: string,
  more: Partial<ConfigInput>,
  prefix: readonly string[] | undefined,
  end: (child: RoleChild) => Promise<void>,
): Effect.Effect<Started, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const dir = join(o.dir, name);
    const servers = bus.urls.join(',');
    const own = { dataDir: join(dir, 'data'), runDir: join(dir, 'run'), credentialsDir: bus.credentialsDir, servers };
    const config = baseConfig(o, { ...more, ...o.overridesOf?.[name], ...own });
    for (const made of [config.dataDir, config.runDir]) mkdirSync(made, { recursive: true, mode: 0o711 });
    const configFile = join(dir, 'config.json');
    writeFileSync(configFile, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    const stderr = yield* acquire(
      () => openSync(join(dir, 'log'), 'a', 0o600),
      (fd) => closeSync(fd),
    );
    const restartMaxMs = o.restartMaxMs ?? UP_LIMITS.restartMaxMs;
    const shared = { program: join(projectRoot(), 'build/dsec.mjs'), configFile, log: o.log, stderr, restartMaxMs };
    const child = yield* acquire(
      () => RoleChild.start({ ...shared, roles: [role], ...(prefix ? { prefix } : {}) }),
      async (started) => {
        await end(started);
      },
    );
    return { name, config, child, role };
  });

const partsOf = (bus: ClusterBus, started: readonly Started[], edges: readonly EdgeName[], network: ClusterNetwork | null): Omit<Parts, 'operatorConfig'> => {
  const members: Member[] = [
    ...bus.servers.map(({ name, process: server }) => ({ name, kind: 'bus' as const, pid: () => server.pid })),
    ...started.map(({ name, role, child }) => ({ name, kind: role, pid: () => child.pid })),
  ];
  const named = <T extends { readonly name: string }>(list: readonly T[], name: string): T => {
    const found = list.find((one) => one.name === name);
    if (!found) throw DsecError.of('INVALID_ARGUMENT', `the cluster has no ${name}; it has ${list.map((one) => one.name).join(', ')}`);
    return found;
  };
  return {
    contextFile: bus.contextFile,
    urls: bus.urls,
    keys: bus.keys,
    edges,
    members,
    configOf: (name) => named(started, name).config,
    member: (name) => named(members, name),
    setLink: async (edge, up) => {
      if (!network) throw DsecError.of('NOT_SUPPORTED', 'Edges without network namespaces cannot be cut off; start the cluster with namespaces');
      await network.setLink(edge, up);
    },
    rollBus: (name) => bus.roll(named<BusServer>(bus.servers, name)),
    spreadLeaders: () =>
      asOperator(bus, (nc) =>
        spreadLeaders(
          nc,
          bus.servers.map(({ name }) => name),
        ),
      ),
  };
};

/** Removes what a cluster kept on disk, once it is closed and its sandboxes have ended. */
export const removeCluster = (dir: string): void => rmSync(dir, { recursive: true, force: true });
