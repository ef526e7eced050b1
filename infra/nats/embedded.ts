/**
 * The bus of `dsec up` in one call: keys, configuration, server process, context file for clients.
 *
 * | file | what |
 * |---|---|
 * | `<bus>/nats-<port>.json` | the server's configuration, written at every start |
 * | `<bus>/store` | JetStream: the only truth of the platform |
 * | `<bus>/lock` `<bus>/server.log` `<bus>/start.log` | lock on the store, the server's logs |
 * | `<credentials>/*.nk` | key seeds |
 * | `<context>` | what SDK and CLI read |
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { type ClientUser, natsConfig } from './config.ts';
import { type BusKeys, clientContext, ensureKeys, writeContext } from './credentials.ts';
import { freePort, isFreePort } from './ports.ts';
import { PROCESS_LIMITS } from './limits.ts';
import { locateNatsServer } from './locate.ts';
import { NatsServer, type ServerEvent } from './process.ts';
import { ROLES, type Role } from './roles.ts';

export type EmbeddedBusOptions = {
  /** Holds the server's store, configuration and logs. */
  readonly busDir: string;
  readonly credentialsDir: string;
  /** Written once the server is ready; names the first client of `clients`. */
  readonly contextFile: string;
  /** 0: the port of the last run when it is free, else any. */
  readonly port: number;
  readonly syncIntervalMs: number;
  readonly edge: EdgeName;
  readonly clients: readonly [{ readonly project: ProjectName; readonly name: string }, ...{ readonly project: ProjectName; readonly name: string }[]];
  readonly projectRoot: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onEvent: (event: ServerEvent) => void;
};

export type EmbeddedBus = {
  readonly servers: readonly string[];
  readonly version: string;
  readonly keys: BusKeys;
  /** Of the server that runs now: it changes with a restart. */
  readonly pid: () => number;
  /** Who may connect from now on, beside those it was started with. Those who lose the right are disconnected. */
  setClients(clients: readonly ClientUser[]): Promise<void>;
  stop(): Promise<void>;
};

export const startEmbeddedBus = async (options: EmbeddedBusOptions): Promise<EmbeddedBus> => {
  const program = await locateNatsServer(options);
  await mkdir(join(options.busDir, 'store'), { recursive: true, mode: 0o700 });
  const keys = await ensureKeys(options.credentialsDir, options.clients);
  const { server, port } = await startOnSomePort(options, program.path, keys);
  const servers = [`127.0.0.1:${port}`];
  const [first] = keys.clients;
  if (first) await writeContext(options.contextFile, clientContext(servers, first));
  let text = configText(options, serverNameOf(options), port, keys);
  let changing: Promise<void> = Promise.resolve();
  const change = async (clients: readonly ClientUser[]): Promise<void> => {
    const next = configText(options, serverNameOf(options), port, keys, clients);
    if (next === text) return;
    await writeFile(configFileOf(options, port), next, { mode: 0o600 });
    // Imports of an account that came with a reload begin to work with the next one (nats-server 2.15).
    for (let time = 0; time < 2; time += 1) await reload(server, join(options.busDir, 'server.log'));
    text = next;
  };
  const setClients = (clients: readonly ClientUser[]): Promise<void> => {
    changing = changing.catch(() => {}).then(() => change(clients));
    return changing;
  };
  return { servers, version: program.version, keys, pid: () => server.pid, setClients, stop: () => server.stop() };
};

/** Resolves when the server says that it has read its configuration again. */
const reload = async (server: NatsServer, logFile: string): Promise<void> => {
  const { size } = await stat(logFile);
  const until = performance.now() + PROCESS_LIMITS.reloadTimeoutMs;
  server.reload();
  while (performance.now() < until) {
    const log = await readFile(logFile);
    const said = log.subarray(log.length >= size ? size : 0).toString('latin1'); // shorter: it has just been rotated
    if (said.includes('Reloaded server configuration')) return;
    if (said.includes('Failed to reload server configuration')) break;
    await delay(PROCESS_LIMITS.readyPollMs);
  }
  throw DsecError.of('BUS_MISCONFIGURED', `nats-server did not take its new configuration; see ${logFile}`);
};

const serverNameOf = ({ edge, busDir }: EmbeddedBusOptions): string => `dsec-${edge}-${createHash('sha256').update(busDir).digest('hex').slice(0, 8)}`;
// Named by port: a second platform on the same directory, which the lock will refuse, must not change the first one's.
const configFileOf = ({ busDir }: EmbeddedBusOptions, port: number): string => join(busDir, `nats-${port}.json`);

/** A fixed port is used or refused. A free one may be taken by another program in the moment before we listen: then another is tried. */
const startOnSomePort = async (options: EmbeddedBusOptions, program: string, keys: BusKeys): Promise<{ server: NatsServer; port: number }> => {
  if (options.port !== 0 && !(await isFreePort(options.port)))
    throw DsecError.of('HOST_UNFIT', `port ${options.port} of the bus is taken by another program; stop it, or choose another port (0 takes a free one)`);
  let port = options.port || (await lastPort(options.contextFile)) || (await freePort());
  for (let attempt = 1; ; attempt += 1) {
    if (options.port === 0 && !(await isFreePort(port))) port = await freePort();
    const serverName = serverNameOf(options);
    const configFile = configFileOf(options, port);
    await writeFile(configFile, configText(options, serverName, port, keys), { mode: 0o600 });
    try {
      const files = { configFile, lockFile: join(options.busDir, 'lock'), startLog: join(options.busDir, 'start.log') };
      const server = await NatsServer.start({ program, serverName, port, ...files, onEvent: options.onEvent });
      await removeOldConfigs(options.busDir, configFile);
      return { port, server };
    } catch (error) {
      const lostTheRace = options.port === 0 && attempt < PROCESS_LIMITS.portAttempts && !(await isFreePort(port));
      if (!lostTheRace) throw error;
    }
  }
};

const configText = (options: EmbeddedBusOptions, serverName: string, port: number, keys: BusKeys, clients: readonly ClientUser[] = []): string =>
  natsConfig({
    serverName,
    port,
    storeDir: join(options.busDir, 'store'),
    logFile: join(options.busDir, 'server.log'),
    syncIntervalMs: options.syncIntervalMs,
    edge: options.edge,
    roles: Object.fromEntries(ROLES.map((role) => [role, keys.roles[role].publicKey])) as Record<Role, string>,
    systemUser: keys.system.publicKey,
    clients: [
      ...keys.clients.map((own) => ownClient(own, clients)),
      ...clients.filter(({ publicKey }) => !keys.clients.some((own) => own.publicKey === publicKey)),
    ],
  });

/** Its name stays the one in its context file, which its inboxes are named after. */
const ownClient = ({ project, name, publicKey }: ClientUser, clients: readonly ClientUser[]): ClientUser => {
  const reach = clients.find((client) => client.publicKey === publicKey)?.reach;
  return { project, name, publicKey, ...(reach ? { reach } : {}) };
};

/** Clients that are connected find a restarted platform again only where it was. */
const lastPort = async (contextFile: string): Promise<number | undefined> => {
  const text = await readFile(contextFile, 'utf8').catch(() => '');
  const port = Number(/"127\.0\.0\.1:(\d+)"/.exec(text)?.[1]);
  return Number.isInteger(port) && port > 0 ? port : undefined;
};

const removeOldConfigs = async (busDir: string, current: string): Promise<void> => {
  for (const name of await readdir(busDir)) {
    if (/^nats-\d+\.json$/.test(name) && join(busDir, name) !== current) await rm(join(busDir, name), { force: true });
  }
};
