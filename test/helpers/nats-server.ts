/**
 * A real nats-server with JetStream for one test file: own loopback port, own temporary store.
 *
 * `kill` and `restart` keep port and store, so that clients find the same server again, as after a crash.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { locateNatsServer } from '#infra/nats/locate.ts';
import { freePort } from '#infra/nats/ports.ts';

const PROJECT_ROOT = fileURLToPath(new URL('../../', import.meta.url));
const READY_TIMEOUT_MS = 20_000;
const READY_POLL_MS = 20;

export type TestNatsServer = {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Sends the signal and waits until the process is gone. Port and store stay. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port and store, after killing it when it still runs. */
  restart(): Promise<void>;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
};

/** `configuration`: further lines of nats-server configuration. */
export const startNatsServer = async (configuration = ''): Promise<TestNatsServer> => {
  const program = await locateNatsServer({ env: process.env, projectRoot: PROJECT_ROOT });
  const directory = await mkdtemp(join(tmpdir(), 'dsec-nats-'));
  const port = await freePort();
  const file = join(directory, 'nats.conf');
  await writeFile(
    file,
    [`listen: 127.0.0.1:${port}`, `jetstream { store_dir: "${join(directory, 'store')}" }`, `log_file: "${join(directory, 'log')}"`, configuration, ''].join(
      '\n',
    ),
  );
  let child = await launch(program.path, file, port);

  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    if (hasEnded(child)) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  return {
    url: `127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? -1;
    },
    kill,
    restart: async () => {
      await kill();
      child = await launch(program.path, file, port);
    },
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
};

const launch = async (program: string, file: string, port: number): Promise<ChildProcess> => {
  const child = spawn(program, ['-c', file], { stdio: 'ignore' });
  // A test run that dies must not leave a server behind.
  const reap = (): void => void child.kill('SIGKILL');
  process.once('exit', reap);
  child.once('exit', () => process.off('exit', reap));
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await accepts(port))) {
    if (hasEnded(child)) throw new Error(`nats-server ended at start with ${child.exitCode ?? child.signalCode}; run it by hand: ${program} -c ${file}`);
    if (performance.now() > deadline) throw new Error(`nats-server did not listen on port ${port} within ${READY_TIMEOUT_MS} ms`);
    await delay(READY_POLL_MS);
  }
  return child;
};

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Whether the server greets: the listening socket alone would be open before JetStream has recovered. */
const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1');
    const settle = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('data', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
  });
