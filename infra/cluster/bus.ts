/**
 * Three nats-servers that form one JetStream cluster, each with a store of its own, supervised like the single one; with the
 * accounts and keys that the single one has, and a key for each Edge.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { natsConfig } from '../nats/config.ts';
import { type BusKeys, clientContext, ensureEdgeKey, ensureIssuerKey, ensureKeys, type Key, writeContext } from '../nats/credentials.ts';
import { greetingOf } from '../nats/greeting.ts';
import { freePort } from '../nats/ports.ts';
import { locateNatsServer } from '../nats/locate.ts';
import { NatsServer, type ServerEvent } from '../nats/process.ts';
import { ROLES, type Role } from '../nats/roles.ts';
import { CLUSTER_LIMITS } from './limits.ts';

export type ClusterBusOptions = {
  readonly dir: string;
  readonly host: string;
  readonly servers: number;
  readonly syncIntervalMs: number;
  readonly edges: readonly EdgeName[];
  readonly clients: readonly [{ readonly project: ProjectName; readonly name: string }, ...{ readonly project: ProjectName; readonly name: string }[]];
  readonly projectRoot: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onEvent: (server: string, event: ServerEvent) => void;
};

export type BusServer = { readonly name: string; readonly port: number; readonly process: NatsServer };

export type ClusterBus = {
  readonly urls: readonly string[];
  readonly servers: readonly BusServer[];
  readonly keys: BusKeys;
  readonly contextFile: string;
  readonly credentialsDir: string;
  /** Hands a server's clients over to the others, and starts it again. Resolves when it is back. */
  roll(server: BusServer): Promise<void>;
  stop(): Promise<void>;
};

export const startClusterBus = async (o: ClusterBusOptions): Promise<ClusterBus> => {
  const program = await locateNatsServer(o);
  const credentialsDir = join(o.dir, 'credentials');
  const keys = await ensureKeys(credentialsDir, o.clients);
  const edges = await Promise.all(o.edges.map(async (name) => ({ name, ...(await ensureEdgeKey(credentialsDir, name)) })));
  const issuer = await ensureIssuerKey(credentialsDir);
  const plan = await planOf(o);
  const started = await Promise.allSettled(plan.servers.map((server) => startServer(o, plan, server, program.path, { keys, edges, issuer })));
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failure = started.find((one) => one.status === 'rejected');
  if (failure) {
    await Promise.all(servers.map(({ process }) => process.stop()));
    throw failure.reason;
  }
  const urls = servers.map(({ port }) => `${o.host}:${port}`);
  const contextFile = join(o.dir, 'context.json');
  const [first] = keys.clients;
  if (first) await writeContext(contextFile, clientContext(urls, first));
  return {
    urls,
    servers,
    keys,
    contextFile,
    credentialsDir,
    roll: (server) => roll(server, o.host),
    stop: async () => {
      await Promise.all(servers.map(({ process }) => process.stop()));
    },
  };
};

type Plan = {
  readonly password: string;
  readonly servers: readonly { readonly name: string; readonly dir: string; readonly port: number; readonly routePort: number }[];
};

/** Ports stay over restarts of the whole: clients that are connected find it where it was. */
const planOf = async ({ dir, host, servers }: ClusterBusOptions): Promise<Plan> => {
  const file = join(dir, 'bus.json');
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  if (kept) return JSON.parse(kept) as Plan;
  const plan: Plan = {
    password: randomBytes(24).toString('base64url'),
    servers: await Promise.all(
      Array.from({ length: servers }, async (_, i) => ({
        name: `nats-${i + 1}`,
        dir: join(dir, `nats-${i + 1}`),
        port: await freePort(host),
        routePort: await freePort(host),
      })),
    ),
  };
  await mkdir(dir, { recursive: true, mode: 0o711 });
  await writeFile(file, `${JSON.stringify(plan, null, 2)}\n`, { mode: 0o600 });
  return plan;
};

const startServer = async (
  o: ClusterBusOptions,
  plan: Plan,
  { name, dir, port, routePort }: Plan['servers'][number],
  program: string,
  { keys, edges, issuer }: { readonly keys: BusKeys; readonly edges: readonly ({ readonly name: EdgeName } & Key)[]; readonly issuer: Key },
): Promise<BusServer> => {
  await mkdir(join(dir, 'store'), { recursive: true, mode: 0o700 });
  const routes = plan.servers.map((server) => `${o.host}:${server.routePort}`);
  const text = natsConfig({
    serverName: name,
    host: o.host,
    port,
    ...(plan.servers.length > 1 ? { cluster: { name: 'dsec', port: routePort, routes, user: 'route', password: plan.password } } : {}),
    storeDir: join(dir, 'store'),
    logFile: join(dir, 'server.log'),
    syncIntervalMs: o.syncIntervalMs,
    edge: '_' as EdgeName,
    edges: edges.map(({ name: edge, publicKey }) => ({ name: edge, publicKey })),
    roles: Object.fromEntries(ROLES.map((role) => [role, keys.roles[role].publicKey])) as Record<Role, string>,
    systemUser: keys.system.publicKey,
    clients: keys.clients.map(({ project, name: client, publicKey }) => ({ project, name: client, publicKey })),
    calloutIssuer: issuer.publicKey,
  });
  const configFile = join(dir, 'nats.json');
  await writeFile(configFile, text, { mode: 0o600 });
  const files = { configFile, lockFile: join(dir, 'lock'), startLog: join(dir, 'start.log') };
  const process = await NatsServer.start({ program, serverName: name, host: o.host, port, ...files, onEvent: (event) => o.onEvent(name, event) });
  return { name, port, process };
};

/** Lame duck: no new clients, the old ones are sent away one by one, then the server ends; its supervisor starts it again. */
const roll = async (server: BusServer, host: string): Promise<void> => {
  const before = server.process.pid;
  process.kill(before, 'SIGUSR2');
  for (const until = performance.now() + CLUSTER_LIMITS.rollingMs; ; await delay(CLUSTER_LIMITS.formingPollMs)) {
    if (server.process.pid !== before && (await greetingOf(server.port, CLUSTER_LIMITS.formingPollMs, host))?.jetstream) return;
    if (performance.now() > until)
      throw DsecError.of(
        'DEADLINE_EXCEEDED',
        `${server.name} is not back after ${CLUSTER_LIMITS.rollingMs / 1_000} s; see its log in ${server.name}/server.log`,
      );
  }
};
