/**
 * Has a launcher at hand: connects to the one that serves a run directory, or starts it.
 *
 * The launcher gets a session of its own and outlives the Edge. While this process lives it keeps the launcher's mount namespace
 * open and gives it to the next one, so that images stay mounted once across the launcher's death.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { LauncherClient } from './client.ts';
import { LAUNCHER_LIMITS } from './limits.ts';

export type LauncherOptions = {
  readonly runDir: string;
  /** Its control group below the root of each hierarchy, `dsec-…`. */
  readonly cgroupName: string;
  /** Same file system as the sandboxes' upper directories. */
  readonly trashDir: string;
  /** Where the sandboxes' directories are made. */
  readonly sandboxesDir?: string;
  /** Generation of this Edge. */
  readonly epoch: number;
  /** Where dsec-launcher and dsec-aether are. */
  readonly binDir: string;
  /** More flags for the launcher, see its usage. */
  readonly flags?: readonly string[];
};

/** Open descriptors of launchers' mount namespaces, by run directory. */
const mountNamespaces = new Map<string, number>();

/** EDGE_FENCED when a newer Edge has taken over, HOST_UNFIT when the launcher does not start; the message says why. */
export const ensureLauncher = async (options: LauncherOptions): Promise<LauncherClient> => {
  const client = (await connectIfThere(options)) ?? (await startAndConnect(options));
  keepMountNamespace(options.runDir, client.info.pid);
  client.onQuit(() => releaseMountNamespace(options.runDir));
  return client;
};

const socketOf = ({ runDir }: LauncherOptions): string => join(runDir, 'launcher.sock');

const connectIfThere = async (options: LauncherOptions): Promise<LauncherClient | undefined> => {
  try {
    return await LauncherClient.connect(socketOf(options), options.epoch, options.cgroupName);
  } catch (thrown) {
    // nobody listens, or a launcher that is just dying took the connection with it
    if (thrown instanceof DsecError && thrown.code === 'EDGE_UNAVAILABLE') return undefined;
    throw thrown;
  }
};

const startAndConnect = async (options: LauncherOptions): Promise<LauncherClient> => {
  const problem = await start(options);
  if (problem === undefined) return LauncherClient.connect(socketOf(options), options.epoch, options.cgroupName);
  // another Edge may have started one in the meantime: then ours found the directory locked
  const other = await connectIfThere(options);
  if (other) return other;
  throw DsecError.of('HOST_UNFIT', `the launcher does not start: ${problem}`, { details: { log: join(options.runDir, 'launcher.log') } });
};

/** Resolves when the launcher listens, which it says on its standard output, or with the reason why it does not. */
const start = async (options: LauncherOptions): Promise<string | undefined> => {
  mkdirSync(options.runDir, { recursive: true, mode: 0o711 });
  mkdirSync(options.trashDir, { recursive: true, mode: 0o700 });
  const logPath = join(options.runDir, 'launcher.log');
  const log = openSync(logPath, 'a', 0o600);
  const namespace = mountNamespaces.get(options.runDir);
  const args = ['--run', options.runDir, '--cgroup', options.cgroupName, '--trash', options.trashDir, ...(options.flags ?? [])];
  if (options.sandboxesDir !== undefined) args.push('--spread', options.sandboxesDir);
  if (namespace !== undefined) args.push('--mount-ns', '3');
  const stdio: StdioOptions = ['ignore', 'pipe', log, ...(namespace === undefined ? [] : [namespace])];
  const child = spawn(join(options.binDir, 'dsec-launcher'), args, { detached: true, stdio, cwd: '/' });
  closeSync(log);
  try {
    return await readiness(child, logPath);
  } finally {
    child.stdout?.destroy();
    child.unref();
  }
};

const readiness = (child: ChildProcess, logPath: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => settle(`it was not ready after ${LAUNCHER_LIMITS.startMs} ms`), LAUNCHER_LIMITS.startMs);
    const settle = (problem: string | undefined): void => {
      clearTimeout(timer);
      child.removeAllListeners('close');
      resolve(problem);
    };
    child.once('error', (error) => settle(error.message));
    child.stdout?.once('data', () => settle(undefined));
    // 'close' comes after the last output, 'exit' may come before it
    child.once('close', (code, signal) => settle(lastLine(logPath) || `it ended with ${signal ?? `code ${code}`}`));
  });

const lastLine = (path: string): string => readFileSync(path, 'utf8').slice(-LAUNCHER_LIMITS.logTailBytes).trim().split('\n').at(-1) ?? '';

const keepMountNamespace = (runDir: string, pid: number): void => {
  let opened: number;
  try {
    opened = openSync(`/proc/${pid}/ns/mnt`, 'r');
  } catch {
    return; // it died in this instant: its successor makes a namespace of its own
  }
  releaseMountNamespace(runDir);
  mountNamespaces.set(runDir, opened);
};

const releaseMountNamespace = (runDir: string): void => {
  const old = mountNamespaces.get(runDir);
  if (old !== undefined) closeSync(old);
  mountNamespaces.delete(runDir);
};
