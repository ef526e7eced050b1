/** The supervised child against a real nats-server: it comes back, it never outlives its supervisor, only one has the store. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { greetingOf } from './greeting.ts';
import { freePort } from './ports.ts';
import { locateNatsServer } from './locate.ts';
import { NatsServer, type ServerEvent, type ServerOptions } from './process.ts';

const PROJECT_ROOT = join(import.meta.dirname, '../..');
let directory: string;
let server: NatsServer | undefined;
let events: ServerEvent[];
let notify: () => void;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dsec-nats-'));
  events = [];
  notify = () => {};
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  await rm(directory, { recursive: true, force: true });
});

const optionsFor = async (configuration: string[] = []): Promise<ServerOptions> => {
  const { path: program } = await locateNatsServer({ env: process.env, projectRoot: PROJECT_ROOT });
  const port = await freePort();
  const configFile = join(directory, 'nats.conf');
  await mkdir(join(directory, 'store'), { recursive: true });
  await writeFile(
    configFile,
    [
      'server_name: under-test',
      `listen: 127.0.0.1:${port}`,
      `jetstream { store_dir: "${directory}/store" }`,
      `log_file: "${directory}/log"`,
      ...configuration,
      '',
    ].join('\n'),
  );
  const onEvent = (event: ServerEvent): void => {
    events.push(event);
    notify();
  };
  return { program, configFile, port, serverName: 'under-test', lockFile: join(directory, 'lock'), startLog: join(directory, 'start.log'), onEvent };
};

/** Resolves once `count` events of the type have been told. */
const eventually = (type: ServerEvent['type'], count = 1): Promise<void> =>
  new Promise((resolve) => {
    notify = () => {
      if (events.filter((event) => event.type === type).length >= count) resolve();
    };
    notify();
  });

const isAlive = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false; // gone, perhaps just now
  }
};
const untilGone = async (pid: number): Promise<void> => {
  const until = performance.now() + 10_000;
  while (isAlive(pid)) {
    if (performance.now() > until) throw new Error(`process ${pid} is still there`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

describe('NatsServer', () => {
  test('comes back after SIGKILL, on the same port', async () => {
    const options = await optionsFor();
    server = await NatsServer.start(options);
    const firstPid = server.pid;
    process.kill(firstPid, 'SIGKILL');
    await eventually('ready', 2);
    expect(server.pid).not.toBe(firstPid);
    expect(events.map(({ type }) => type)).toEqual(['ready', 'exited', 'ready']);
    expect(events[1]).toMatchObject({ pid: firstPid, signal: 'SIGKILL' });
    expect(await greetingOf(options.port, 5_000)).toMatchObject({ server_name: 'under-test' });
  });

  test('a hung server is killed and comes back', async () => {
    server = await NatsServer.start({ ...(await optionsFor()), limits: { healthIntervalMs: 50, greetingTimeoutMs: 200, greetingsMissed: 3 } });
    process.kill(server.pid, 'SIGSTOP');
    await eventually('ready', 2);
    expect(events.map(({ type }) => type)).toEqual(['ready', 'hung', 'exited', 'ready']);
  });

  test('stops in order and says so; stopping twice is harmless', async () => {
    server = await NatsServer.start(await optionsFor());
    const { pid } = server;
    await Promise.all([server.stop(), server.stop()]);
    expect(isAlive(pid)).toBe(false);
    expect(events.at(-1)).toEqual({ type: 'stopped', pid, forced: false });
    expect(events.filter(({ type }) => type === 'exited')).toEqual([]);
  });

  test('a configuration that the server refuses is reported with what it said', async () => {
    const options = await optionsFor(['max_payload: "many"']);
    await expect(NatsServer.start(options)).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED', message: expect.stringMatching(/max_payload|integer|int64/i) });
  });

  test('ends with a supervisor that is killed, and the next one gets the store', async () => {
    const options = await optionsFor();
    const script = join(directory, 'supervisor.mjs');
    const source = `import { NatsServer } from './process.ts'; const s = await NatsServer.start({ ...JSON.parse(process.argv[2]), onEvent: () => {} }); console.log(s.pid);`;
    await build({
      stdin: { contents: source, resolveDir: import.meta.dirname, loader: 'ts' },
      outfile: script,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
    });
    const supervisor = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface(supervisor.stdout), 'line');
    const orphan = Number(line);
    expect(isAlive(orphan)).toBe(true);
    supervisor.kill('SIGKILL');
    server = await NatsServer.start(options);
    await untilGone(orphan);
    expect(server.pid).not.toBe(orphan);
  });
});
