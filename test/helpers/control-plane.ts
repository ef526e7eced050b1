/**
 * A control plane of real processes on a real bus, over a fleet of Edges whose sandboxes are records only: for tests and benchmarks of
 * what happens between a client's request and the commit that a sandbox runs.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { type Config, type ConfigInput, loadConfig } from '#runtime/config.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { createLog, type LogLevel } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { ServedRole } from '#runtime/roles/supervision.ts';
import { RoleChild } from '#runtime/roles/up/child.ts';
import { connect, type DsecClient } from '#sdk/mod.ts';
import { startNatsCluster } from './nats-cluster.ts';
import { startNatsServer } from './nats-server.ts';

export type ControlPlaneOptions = {
  /** Roles of each process; default: one with all but placement, and one placement. */
  readonly control?: readonly (readonly ServedRole[])[];
  /** Edges hosted by each process. */
  readonly fleet: readonly number[];
  readonly replicas?: 1 | 3;
  readonly shards?: number;
  readonly lanes?: number;
  readonly overrides?: Partial<ConfigInput>;
  readonly logLevel?: LogLevel;
};

export type ControlPlane = {
  readonly servers: readonly string[];
  readonly project: string;
  readonly logFile: string;
  readonly config: Config;
  readonly busPids: readonly number[];
  /** In the order of the options. */
  readonly control: readonly RoleChild[];
  readonly fleet: readonly RoleChild[];
  connect(project?: string): Promise<DsecClient>;
  /** One more process of cluster roles. */
  startControl(roles: readonly ServedRole[]): Promise<RoleChild>;
  /** Run directories, in the order of the options. */
  controlDir(n: number): string;
  fleetDir(n: number): string;
  /** With one server only: SIGKILL, and the same server again. */
  killBus(): Promise<void>;
  restartBus(): Promise<void>;
  close(): Promise<void>;
};

const PROJECT = 'acme';

export const startControlPlane = async (options: ControlPlaneOptions): Promise<ControlPlane> => {
  const { replicas = 1, logLevel = 'warn' } = options;
  const dir = mkdtempSync(join(tmpdir(), 'dsec-cp-'));
  const bus = await startBus(replicas);
  await layer(dir);
  const logFile = join(dir, 'roles.log');
  const stderr = openSync(logFile, 'a', 0o600);
  const children: RoleChild[] = [];
  const settings = {
    dataDir: join(dir, 'data'),
    layersDir: join(dir, 'layers'),
    servers: bus.servers.join(','),
    replicas,
    shardCount: options.shards ?? 1,
    laneCount: options.lanes ?? 1,
    project: PROJECT,
    logLevel,
    ...options.overrides,
  };
  const start = async (name: string, roles: readonly ServedRole[], more: object = {}): Promise<RoleChild> => {
    const configFile = join(dir, `${name}.json`);
    const own = { ...settings, runDir: join(dir, name), ...more };
    for (const path of [own.runDir, own.dataDir]) mkdirSync(path ?? dir, { recursive: true });
    writeFileSync(configFile, JSON.stringify(own));
    const child = await RoleChild.start({
      roles,
      program: join(projectRoot(), 'build/dsec.mjs'),
      configFile,
      log: createLog('control-plane', 'error'),
      stderr,
      restartMaxMs: 200,
    });
    children.push(child);
    return child;
  };
  const close = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
    await bus.stop();
    closeSync(stderr);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const control: RoleChild[] = [];
    const startControl = async (roles: readonly ServedRole[]): Promise<RoleChild> => {
      const n = control.length;
      const child = await start(`control-${n}`, roles, { dataDir: join(dir, `data-${n}`) });
      control.push(child);
      return child;
    };
    for (const roles of options.control ?? [['apiserver', 'iam', 'watcher'], ['placement']]) await startControl(roles);
    const fleet: RoleChild[] = [];
    for (const [n, nullEdges] of options.fleet.entries())
      fleet.push(await start(`fleet-${n}`, ['edge'], { backend: 'null', nullEdges, edgeName: `host-${n}` }));
    return {
      servers: bus.servers,
      busPids: bus.pids(),
      project: PROJECT,
      logFile,
      config: loadConfig({ flags: settings as Partial<ConfigInput> }),
      control,
      fleet,
      controlDir: (n) => join(dir, `control-${n}`),
      fleetDir: (n) => join(dir, `fleet-${n}`),
      killBus: () => bus.kill(),
      restartBus: () => bus.restart(),
      startControl,
      connect: (project = PROJECT) => connect({ servers: bus.servers, project }),
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
};

type BusProcess = { readonly servers: readonly string[]; pids(): number[]; stop(): Promise<void>; kill(): Promise<void>; restart(): Promise<void> };

const startBus = async (replicas: 1 | 3): Promise<BusProcess> => {
  if (replicas === 1) {
    const server = await startNatsServer('max_payload: 1048576');
    return { servers: [server.url], pids: () => [server.pid], stop: () => server.stop(), kill: () => server.kill(), restart: () => server.restart() };
  }
  const cluster = await startNatsCluster();
  const notHere = () => Promise.reject(new Error('a cluster loses single servers: see startNatsCluster'));
  return { servers: cluster.urls, pids: () => cluster.pids(), stop: () => cluster.stop(), kill: notHere, restart: notHere };
};

/** Something that the name `small` stands for; nothing of it is ever mounted. */
const layer = async (dir: string): Promise<void> => {
  const root = join(dir, 'root');
  mkdirSync(join(root, 'etc'), { recursive: true });
  writeFileSync(join(root, 'etc/hostname'), 'nowhere\n');
  await buildLayer(new PosixLayerStore({ dir: join(dir, 'layers') }), { name: 'small', kind: 'base', source: { type: 'directory', path: root } });
};
