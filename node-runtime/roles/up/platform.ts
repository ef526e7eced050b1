/**
 * The whole platform on one machine: the bus as a child, the control roles in one process, the Edge in another.
 *
 * Used by `dsec up`, the demo, the benchmarks and the end-to-end tests. Supervises; decides nothing about sandboxes.
 */
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Effect, type Scope } from 'effect';
import { DsecError } from '#bus/errors.ts';
import { type EmbeddedBus, startEmbeddedBus } from '#infra/nats/embedded.ts';
import { type Config, pathsOf } from '../../config.ts';
import type { Log } from '../../log/log.ts';
import { projectRoot } from '../../project-root.ts';
import { acquire, type Ending, openEndable, step } from '../scope.ts';
import type { FromRole } from '../supervision.ts';
import { RoleChild } from './child.ts';
import { UP_LIMITS } from './limits.ts';
import { lockDataDir, lockRunDir } from './lock.ts';

export type PlatformOptions = {
  readonly config: Config;
  readonly log: Log;
  /** Where the roles' logs go: a file, or the parent's stderr. */
  readonly logFile?: string | undefined;
  readonly onProgress?: (message: string) => void;
  /** Longest pause before a role that died is started again; shorter for those who kill it on purpose. */
  readonly restartMaxMs?: number | undefined;
};

export interface Platform {
  /** File that SDK and CLI read to find this platform. */
  readonly contextFile: string;
  readonly bus: Pick<EmbeddedBus, 'servers' | 'version' | 'pid' | 'keys'>;
  readonly config: Config;
  /** Process ids right now; they change when a role dies and is started again. */
  pids(): { readonly bus: number; readonly control: number | undefined; readonly edge: number | undefined };
  /** Ends every sandbox, then every role, then the bus. Repeatable. */
  close(): Promise<void>;
  /** Ends the roles and the bus; sandboxes go on until the platform is started again on the same directories. */
  closeKeepingSandboxes(): Promise<void>;
}

export const startPlatform = (options: PlatformOptions): Promise<Platform> => {
  const progress = options.onProgress ?? (() => {});
  return openEndable((ending) => program(options, progress, ending));
};

type Parts = Omit<Platform, 'close' | 'closeKeepingSandboxes'>;

const program = (o: PlatformOptions, progress: (message: string) => void, ending: Ending): Effect.Effect<Parts, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { config, log } = o;
    if (process.getuid?.() !== 0)
      return yield* Effect.fail(DsecError.of('HOST_UNFIT', 'the platform makes namespaces, mounts and control groups: run it as root (sudo dsec up)'));
    const paths = pathsOf(config);
    mkdirSync(config.dataDir, { recursive: true, mode: 0o711 });
    mkdirSync(config.runDir, { recursive: true, mode: 0o711 });
    yield* acquire(
      () => lockDataDir(config.dataDir),
      (unlock) => unlock(),
    );
    yield* acquire(
      () => lockRunDir(config.runDir),
      (unlock) => unlock(),
    );
    yield* acquire(
      () => config.runDir,
      (dir) => (ending.drain ? clearRunDir(dir) : undefined),
    );
    progress('starting nats-server');
    const bus = yield* acquire(
      () =>
        startEmbeddedBus({
          busDir: paths.bus,
          credentialsDir: paths.credentials,
          contextFile: paths.context,
          port: config.busPort,
          syncIntervalMs: config.busSyncIntervalMs,
          edge: config.edgeName,
          clients: [{ project: config.project, name: 'owner' }],
          projectRoot: projectRoot(),
          env: process.env,
          onEvent: (event) => log[event.type === 'ready' || event.type === 'stopped' ? 'info' : 'warn'](`bus.${event.type}`, { detail: event }),
        }),
      (b) => b.stop(),
    );
    const settings = { ...config, servers: bus.servers.join(',') };
    const configFile = yield* step(async () => writeSettings(join(config.runDir, 'roles.json'), settings));
    const edgeFile = yield* step(async () => writeSettings(join(config.runDir, 'edge.json'), { ...settings, opsListen: portAfter(config.opsListen) }));
    const stderr = yield* acquire(
      () => (o.logFile ? openSync(o.logFile, 'a', 0o600) : ('inherit' as const)),
      (fd) => (typeof fd === 'number' ? closeSync(fd) : undefined),
    );
    const shared = { program: join(projectRoot(), 'build/dsec.mjs'), configFile, log, stderr, restartMaxMs: o.restartMaxMs ?? UP_LIMITS.restartMaxMs };
    const heed = (message: FromRole) => {
      if (message.type !== 'clients') return;
      bus.setClients(message.clients).catch((thrown: unknown) => log.error('bus.not_reconfigured', { message: (thrown as Error).message }));
    };
    progress('starting iam, apiserver, placement, watcher and jobs');
    const control = yield* acquire(
      () => RoleChild.start({ ...shared, onMessage: heed, roles: ['iam', 'apiserver', 'placement', 'watcher', 'jobs'] }),
      (child) => child.stop(),
    );
    progress('starting the Edge');
    const edge = yield* acquire(
      () => RoleChild.start({ ...shared, configFile: edgeFile, roles: ['edge'] }),
      async (child) => {
        if (ending.drain && !(await child.drain((left) => progress(`ending ${left} sandboxes`)))) log.warn('edge.not_drained', {});
        await child.stop();
      },
    );
    return { contextFile: paths.context, bus, config, pids: () => ({ bus: bus.pid(), control: control.pid, edge: edge.pid }) };
  });

const writeSettings = (file: string, settings: object): string => {
  writeFileSync(file, JSON.stringify(settings, null, 2), { mode: 0o600 });
  return file;
};

/** Two processes cannot listen on one port: the Edge takes the next one. */
const portAfter = (listen: string): string => listen.replace(/:([1-9]\d*)$/, (_, port: string) => `:${Number(port) + 1}`);

/** Sockets, tombstones, pid files: nothing in the run directory outlives the platform. Mount points are empty by then. */
const clearRunDir = async (dir: string): Promise<void> => {
  for (const entry of await readdir(dir).catch(() => [])) await rm(join(dir, entry), { recursive: true, force: true });
  rmSync(dir, { recursive: true, force: true });
};
