/**
 * The nats-server configuration of a single machine, as a pure function from data to text (JSON, which the server reads as well).
 *
 * Accounts: PLATFORM holds JetStream and the roles. Each project has an account of its own that imports as services and
 * streams the parts of `dsec.api`, `dsec.op` and `dsec.out` that its principals reach, and nothing else. Imports share who asks:
 * the server itself puts `Nats-Request-Info` into each request. One account for all clients would not do: the server does
 * not check reply subjects, so a tenant could have an answer delivered to another tenant's inbox. @paper §3.2
 *
 * INV-TENANT: no message of one project's clients reaches another project's subjects.
 */
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { CLIENT_EXPORTS, clientRights } from '#bus/subjects.ts';
import { NATS_LIMITS } from './limits.ts';
import { type Permissions, permissionsOf, ROLES, type Role } from './roles.ts';

export type ClientUser = {
  readonly project: ProjectName;
  /** Unique within the project; part of its inbox prefix. */
  readonly name: string;
  readonly publicKey: string;
  /** Projects that it may ask; its own alone when left out. `operations`: exec, files, ports. */
  readonly reach?: readonly { readonly project: ProjectName; readonly operations: boolean }[];
};

/** One server of several: whom it talks to. Routes carry every account's messages, so they have a password of their own. */
export type ClusterSettings = {
  readonly name: string;
  readonly port: number;
  /** `host:port` of every server, itself included. */
  readonly routes: readonly string[];
  readonly user: string;
  readonly password: string;
};

export type BusSettings = {
  readonly serverName: string;
  /** Address to listen on; loopback unless Edges run on other hosts. */
  readonly host?: string;
  readonly cluster?: ClusterSettings;
  /** One key per node, where there are several; with none, the key of the role `edge` is for the node `edge`. */
  readonly edges?: readonly { readonly name: EdgeName; readonly publicKey: string }[];
  readonly port: number;
  readonly storeDir: string;
  readonly logFile: string;
  /** How often stored messages are flushed to disk; 0 flushes each one before it is acknowledged. Bounds what a power cut may lose. */
  readonly syncIntervalMs: number;
  readonly edge: EdgeName;
  /** Public nkeys. */
  readonly roles: Readonly<Record<Role, string>>;
  readonly systemUser: string;
  readonly clients: readonly ClientUser[];
  /** Public key that signs the answers of auth callout; without it, only the users named here can connect. */
  readonly calloutIssuer?: string;
};

export const PLATFORM_ACCOUNT = 'PLATFORM';
const SYSTEM_ACCOUNT = 'SYS';
/** Clients whom IAM lets in by auth callout, in a cluster. What each may say is in the token of its connection. */
export const CLIENTS_ACCOUNT = 'CLIENTS';
export const clientAccount = (project: ProjectName): string => `CLIENTS_${project}`;

/** Only this client may subscribe below it, so nobody else sees its answers. */
export const clientInboxPrefix = (user: Pick<ClientUser, 'project' | 'name'>): string => `_INBOX.${user.project}.${user.name}`;

export const natsConfig = (settings: BusSettings): string => `${JSON.stringify(configOf(settings), null, 2)}\n`;

const configOf = (settings: BusSettings) => ({
  server_name: settings.serverName,
  listen: `${settings.host ?? '127.0.0.1'}:${settings.port}`,
  ...(settings.cluster ? { cluster: clusterOf(settings.host ?? '127.0.0.1', settings.cluster) } : {}),
  jetstream: {
    store_dir: settings.storeDir,
    sync_interval: settings.syncIntervalMs === 0 ? 'always' : `${settings.syncIntervalMs}ms`,
  },
  max_payload: NATS_LIMITS.maxPayloadBytes,
  max_control_line: NATS_LIMITS.maxControlLineBytes,
  max_pending: NATS_LIMITS.maxPendingBytes,
  // One machine: nobody else to move clients to, so the lame-duck phase is as short as the server allows.
  lame_duck_duration: '30s',
  lame_duck_grace_period: '1s',
  log_file: settings.logFile,
  logfile_size_limit: NATS_LIMITS.logFileBytes,
  logfile_max_num: NATS_LIMITS.logFiles,
  system_account: SYSTEM_ACCOUNT,
  ...(settings.calloutIssuer ? { authorization: { timeout: NATS_LIMITS.signInSeconds, auth_callout: calloutOf(settings, settings.calloutIssuer) } } : {}),
  accounts: {
    ...(settings.calloutIssuer ? { [CLIENTS_ACCOUNT]: calledAccount } : {}),
    [SYSTEM_ACCOUNT]: { users: [{ nkey: settings.systemUser }] },
    [PLATFORM_ACCOUNT]: platformAccount(settings),
    ...Object.fromEntries(projectsOf(settings.clients).map((project) => [clientAccount(project), projectAccount(project, settings.clients)])),
  },
});

/** Everybody who is named in the configuration is let in without being asked about; all others go to IAM. */
const calloutOf = ({ roles, edges = [], systemUser, clients }: BusSettings, issuer: string) => ({
  issuer,
  account: PLATFORM_ACCOUNT,
  auth_users: [...Object.values(roles), ...edges.map(({ publicKey }) => publicKey), systemUser, ...clients.map(({ publicKey }) => publicKey)],
});

/** Imports everything that clients may ever ask; each connection's token says which of it is its own. */
const calledAccount = {
  imports: [
    ...CLIENT_EXPORTS.services.map((subject) => ({ service: { account: PLATFORM_ACCOUNT, subject }, share: true })),
    ...CLIENT_EXPORTS.streams.map((subject) => ({ stream: { account: PLATFORM_ACCOUNT, subject } })),
  ],
};

const clusterOf = (host: string, { name, port, routes, user, password }: ClusterSettings) => ({
  name,
  listen: `${host}:${port}`,
  authorization: { user, password },
  routes: routes.map((route) => `nats-route://${user}:${password}@${route}`),
});

const projectsOf = (clients: readonly ClientUser[]): ProjectName[] => [...new Set(clients.map(({ project }) => project))].sort();

const platformAccount = ({ roles, edge, edges = [] }: BusSettings) => {
  return {
    jetstream: 'enabled',
    users: [
      ...ROLES.map((role) => ({ nkey: roles[role], permissions: permissionsOf(role, edge) })),
      ...edges.map(({ name, publicKey }) => ({ nkey: publicKey, permissions: permissionsOf('edge', name) })),
    ],
    exports: [
      // Every request has one answer (output is read by offset), so the server may drop the reply's mapping after it.
      // To any account that this configuration has: a list of them would not be read again while the server runs.
      ...CLIENT_EXPORTS.services.map((service) => ({ service, response_type: 'singleton' })),
      ...CLIENT_EXPORTS.streams.map((stream) => ({ stream })),
    ],
  };
};

const projectAccount = (project: ProjectName, clients: readonly ClientUser[]) => {
  const members = clients.filter((client) => client.project === project);
  const reached = [...new Set(members.flatMap((client) => reachOf(client).map((one) => one.project)))].sort();
  const rights = reached.map(clientRights);
  return {
    users: members.map((client) => ({ nkey: client.publicKey, permissions: permissionsOfClient(client) })),
    imports: [
      ...unique(rights.flatMap(({ services }) => services)).map((subject) => ({ service: { account: PLATFORM_ACCOUNT, subject }, share: true })),
      ...unique(rights.flatMap(({ streams }) => streams)).map((subject) => ({ stream: { account: PLATFORM_ACCOUNT, subject } })),
    ],
  };
};

const unique = (subjects: readonly string[]): string[] => [...new Set(subjects)];
const reachOf = ({ project, reach }: ClientUser) => reach ?? [{ project, operations: true }];

/** What a client may publish and subscribe to, on one machine and in the tokens of a cluster. Verbs are checked by who answers them. */
export const permissionsOfClient = (client: Pick<ClientUser, 'project' | 'name' | 'publicKey' | 'reach'>): Permissions => {
  const rights = reachOf(client).map(({ project, operations }) => ({ ...clientRights(project), operations }));
  return {
    publish: rights.flatMap(({ services, operations }) => (operations ? services : services.filter((subject) => subject.startsWith('dsec.api.')))),
    subscribe: unique([...rights.flatMap(({ streams }) => streams), `${clientInboxPrefix(client)}.>`]),
  };
};
