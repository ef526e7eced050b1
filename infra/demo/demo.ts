/**
 * `npm run demo`: the platform on this machine, a real job in 32 sandboxes, the Edge killed with SIGKILL in the middle, a
 * table, and nothing left. Exits 0 only when every claim of the table was verified.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { toWireError } from '#bus/errors.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { cgroupNameOf, type ConfigInput, loadConfig, pathsOf } from '#runtime/config.ts';
import { createLog } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { runDirNamed } from '#runtime/run-directory.ts';
import { type Platform, startPlatform } from '#runtime/roles/up/platform.ts';
import { connect } from '#sdk/mod.ts';
import { ensureImages } from './images.ts';
import { type JobReport, runJob } from './job.ts';
import { countLeftovers, findLeftovers } from './leftovers.ts';
import { DEMO_PROJECT } from './project.ts';
import { printReport, type Rehydration, verify } from './report.ts';

const COUNT = 32;
const startedAt = performance.now();
const say = (line: string): void => {
  process.stderr.write(`[${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s] ${line}\n`);
};

const main = async (): Promise<number> => {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
  const dir = mkdtempSync(join(tmpdir(), 'dsec-demo-'));
  const runDir = runDirNamed(basename(dir));
  const flags: Partial<ConfigInput> = {
    dataDir: join(dir, 'data'),
    runDir,
    layersDir: join(projectRoot(), '.cache/demo/layers'),
    edgeName: 'demo' as ConfigInput['edgeName'],
    logLevel: 'info',
  };
  const config = loadConfig({ flags });
  let platform: Platform | undefined;
  let report: JobReport | undefined;
  let killedEdge: number | undefined;
  let rehydration: Rehydration | undefined;
  try {
    const images = await ensureImages(new PosixLayerStore({ dir: pathsOf(config).layers }), DEMO_PROJECT, say, interrupted.signal);
    platform = await startPlatform({ config, log: createLog('up', 'silent'), logFile: join(dir, 'roles.log'), onProgress: say });
    interrupted.signal.throwIfAborted();
    await using dsec = await connect({ contextFile: platform.contextFile });
    const running = platform;
    report = await abortable(
      runJob({
        dsec,
        project: DEMO_PROJECT,
        images,
        count: COUNT,
        say,
        interrupt: async () => {
          killedEdge = killEdge(running);
        },
      }),
      interrupted.signal,
    );
    if (platform.pids().edge !== killedEdge) rehydration = lastRehydration(join(dir, 'roles.log'));
  } finally {
    await platform?.close();
    if (!report) keepLog(join(dir, 'roles.log'));
    rmSync(dir, { recursive: true, force: true });
  }
  const left = findLeftovers({ cgroupName: cgroupNameOf(config), dirs: [dir, runDir], namespaces: report.namespaces });
  printReport(report, { rehydration, left: countLeftovers(left), seconds: (performance.now() - startedAt) / 1_000 });
  const problems = verify(report, COUNT, rehydration, left);
  for (const problem of problems) say(`WRONG: ${problem}`);
  return problems.length === 0 ? 0 : 1;
};

/** SIGKILL; the supervisor starts a new Edge by itself. */
const killEdge = (platform: Platform): number => {
  const pid = platform.pids().edge;
  if (pid === undefined) throw new Error('the Edge does not run');
  say(`kill -9 ${pid}: the Edge, while the suites run`);
  process.kill(pid, 'SIGKILL');
  return pid;
};

/** What the newest Edge said when it had taken over, from the roles' log. */
const lastRehydration = (logFile: string): Rehydration | undefined =>
  readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"event":"edge.rehydrated"'))
    .map((line) => JSON.parse(line) as Rehydration)
    .at(-1);

const abortable = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('interrupted')), { once: true });
    work.then(resolve, reject);
  });

/** A job that failed leaves the roles' log behind, where its reader is told to look. */
const keepLog = (file: string): void => {
  if (!existsSync(file)) return; // the platform never started
  const kept = join(tmpdir(), `dsec-demo-${process.pid}.log`);
  copyFileSync(file, kept);
  say(`the roles' log is kept in ${kept}`);
};

main().then(
  (code) => {
    process.exitCode = code;
  },
  (thrown: unknown) => {
    const { code, message } = toWireError(thrown);
    say(`demo failed: ${code}: ${message}`);
    process.exitCode = 1;
  },
);
