/** `npm run cluster -- up|status|down|reset`: a whole cluster on this machine, from code. */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { DsecError, toWireError } from '#bus/errors.ts';
import { ENDED_STATUSES } from '#bus/sandbox/state.ts';
import { createLog } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { connect } from '#sdk/mod.ts';
import { startCluster } from './cluster.ts';
import { CLUSTER_LIMITS } from './limits.ts';
import { isRunning, keepRecord, readRecord, removeRecord } from './record.ts';

const DEFAULT_DIR = '/var/lib/dsec-cluster';
const DEFAULT_EDGES = 3;
const say = (line: string): void => void process.stderr.write(`cluster: ${line}\n`);

type UpFlags = { dir: string; edges?: string; detach?: true };

const up = async (flags: UpFlags): Promise<void> => {
  const dir = resolve(flags.dir);
  const edges = Number(flags.edges ?? readRecord(dir)?.edges.length ?? DEFAULT_EDGES);
  if (!Number.isInteger(edges) || edges < 1 || edges > CLUSTER_LIMITS.edgesMax)
    throw DsecError.of('INVALID_ARGUMENT', `--edges: ${flags.edges} is not a number from 1 to ${CLUSTER_LIMITS.edgesMax}`);
  if (isRunning(dir)) throw DsecError.of('HOST_UNFIT', `a cluster runs on ${dir} already; npm run cluster -- down --dir ${dir} ends it`);
  if (flags.detach) return upDetached(dir, edges);
  const ended = endSignal();
  const cluster = await startCluster({ dir, edges, log: createLog('cluster', 'info'), onProgress: say });
  const stopRecord = keepRecord(dir, cluster);
  say(`ready: ${cluster.members.map(({ name }) => name).join(', ')}`);
  say(`clients: export DSEC_CONTEXT=${cluster.contextFile}; operators: export DSEC_CONFIG=${cluster.operatorConfig}`);
  const keep = await ended;
  say(keep ? 'ending every service; sandboxes go on' : 'ending the sandboxes, then every service');
  stopRecord();
  await (keep ? cluster.closeKeepingSandboxes() : cluster.close());
  if (!keep) removeRecord(dir);
  say('ended');
};

/** SIGHUP keeps the sandboxes, Ctrl-C and SIGTERM do not. */
const endSignal = (): Promise<boolean> =>
  new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => done(signal === 'SIGHUP'));
  });

const upDetached = async (dir: string, edges: number): Promise<void> => {
  mkdirSync(dir, { recursive: true, mode: 0o711 });
  const logFile = join(dir, 'cluster.log');
  const log = openSync(logFile, 'a', 0o600);
  const args = ['--enable-source-maps', join(projectRoot(), 'build/cluster.mjs'), 'up', '--dir', dir, '--edges', String(edges)];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  for (const until = performance.now() + 2 * CLUSTER_LIMITS.formingMs; !isRunning(dir); await delay(CLUSTER_LIMITS.formingPollMs)) {
    if (child.exitCode !== null || performance.now() > until) throw DsecError.of('HOST_UNFIT', `the cluster did not start; ${logFile} says why`);
  }
  const record = readRecord(dir);
  say(`ready. Clients: export DSEC_CONTEXT=${record?.contextFile}; npm run cluster -- down --dir ${dir} ends it`);
};

/** Tells the supervisor to end and waits for it; false when none runs. */
const down = async (dir: string, keepSandboxes: boolean): Promise<boolean> => {
  const record = readRecord(dir);
  if (!record || !isRunning(dir)) return false;
  process.kill(record.pid, keepSandboxes ? 'SIGHUP' : 'SIGTERM');
  while (isRunning(dir)) await delay(CLUSTER_LIMITS.formingPollMs);
  return true;
};

const status = (dir: string, json: boolean): void => {
  const record = readRecord(dir);
  const running = isRunning(dir);
  if (json) process.stdout.write(`${JSON.stringify({ running, ...record }, null, 2)}\n`);
  else if (!record) process.stdout.write(`there is no cluster on ${dir}; npm run cluster -- up --dir ${dir} starts one\n`);
  else for (const { name, pid } of record.members) process.stdout.write(`${name.padEnd(16)} ${running && pid ? `pid ${pid}` : 'not running'}\n`);
};

/** Every service is ended and built anew from code on the same stores; what lives in sandboxes must notice nothing. */
const reset = async (dir: string): Promise<void> => {
  const before = await livingOn(dir);
  say(`${before.size} sandboxes live; ending every service`);
  if (!(await down(dir, true))) throw DsecError.of('HOST_UNFIT', `no cluster runs on ${dir}; npm run cluster -- up --dir ${dir} starts one`);
  say('building the program, then every service');
  const { bundle, entryPoints } = (await import(join(projectRoot(), 'infra/tools/bundle.mjs'))) as Bundler;
  for (const [name, source] of Object.entries(entryPoints())) if (name === 'dsec' || name === 'cluster') await bundle(name, source);
  await up({ dir, detach: true });
  const after = await livingOn(dir);
  const gone = [...before].filter((id) => !after.has(id));
  if (gone.length > 0)
    throw DsecError.of('SANDBOX_LOST', `${gone.length} of ${before.size} sandboxes did not survive, the first is ${gone[0]}; dsec events ${gone[0]} says why`);
  say(`${after.size} sandboxes live; none was lost`);
};
type Bundler = { bundle(name: string, source: string): Promise<void>; entryPoints(): Record<string, string> };

const livingOn = async (dir: string): Promise<Set<string>> => {
  const record = readRecord(dir);
  if (!record || !isRunning(dir)) return new Set();
  await using dsec = await connect({ contextFile: record.contextFile });
  const ids = new Set<string>();
  for await (const { id, status: state } of dsec.list()) if (state && !ENDED_STATUSES.has(state)) ids.add(id);
  return ids;
};

const program = new Command('cluster')
  .description('a whole cluster on this machine: three nats-servers, two of each role, Edges in network namespaces')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run cluster -- up --edges 3\n  npm run cluster -- up --detach && npm run cluster -- status\n  npm run cluster:reset\n  npm run cluster -- down\n',
  );
const command = (name: string, what: string): Command =>
  program.command(name).description(what).option('--dir <dir>', 'where the cluster keeps everything', DEFAULT_DIR);

command('up', 'start it and stay until Ctrl-C, which ends its sandboxes too')
  .option('--edges <n>', `hosts with an Edge; as many as last time, or ${DEFAULT_EDGES}`)
  .option('--detach', 'return when it is ready, and leave it running')
  .action(up);
command('status', 'list its processes')
  .option('--json', 'print JSON')
  .action((flags: { dir: string; json?: true }) => status(resolve(flags.dir), flags.json === true));
command('down', 'end it')
  .option('--keep-sandboxes', 'leave the sandboxes running; the next up finds them')
  .action(async (flags: { dir: string; keepSandboxes?: true }) => {
    if (!(await down(resolve(flags.dir), flags.keepSandboxes === true))) say('no cluster runs there');
  });
command('reset', 'end every service and build all of them anew from code; live sandboxes go on').action((flags: { dir: string }) => reset(resolve(flags.dir)));

program.parseAsync().catch((thrown: unknown) => {
  const { code, message } = toWireError(thrown);
  say(`${code}: ${message}`);
  process.exitCode = 1;
});
