/**
 * `npm run demo`: the platform on this machine, a real job in 32 sandboxes, the Edge killed with SIGKILL in the middle, a
 * table, and nothing left. Exits 0 only when every claim of the table was verified.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { Platform } from '#runtime/roles/up/platform.ts';
import { connect } from '#sdk/mod.ts';
import { ensureImages } from './images.ts';
import { type JobReport, runJob } from './job.ts';
import { countLeftovers, findLeftovers } from './leftovers.ts';
import { startDemoPlatform } from './platform.ts';
import { DEMO_PROJECT } from './project.ts';
import { printReport, type Rehydration, verify } from './report.ts';
import { abortable, type DemoFrame, main } from './run-demo.ts';

const COUNT = 32;

const demo = async ({ say, signal, elapsedSeconds }: DemoFrame): Promise<readonly string[]> => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-demo-'));
  const logFile = join(dir, 'roles.log');
  let report: JobReport | undefined;
  let rehydration: Rehydration | undefined;
  try {
    const images = (store: PosixLayerStore) => ensureImages(store, DEMO_PROJECT, say, signal);
    const started = await startDemoPlatform({ dir, say, signal, images, overrides: { logLevel: 'info' } });
    try {
      signal.throwIfAborted();
      const { platform } = started;
      await using dsec = await connect({ contextFile: platform.contextFile });
      let killedEdge: number | undefined;
      const interrupt = async () => {
        killedEdge = killEdge(platform, say);
      };
      report = await abortable(runJob({ dsec, project: DEMO_PROJECT, images: started.images, count: COUNT, say, interrupt }), signal);
      if (platform.pids().edge !== killedEdge) rehydration = lastRehydration(logFile);
    } finally {
      await started.close();
    }
    rmSync(dir, { recursive: true, force: true });
    const left = findLeftovers({ cgroupName: started.cgroupName, dirs: started.dirs, namespaces: report.namespaces });
    printReport(report, { rehydration, left: countLeftovers(left), seconds: elapsedSeconds() });
    return verify(report, COUNT, rehydration, left);
  } finally {
    if (!report && !signal.aborted) keepLog(logFile, say);
    rmSync(dir, { recursive: true, force: true });
  }
};

/** SIGKILL; the supervisor starts a new Edge by itself. */
const killEdge = (platform: Platform, say: DemoFrame['say']): number => {
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

/** A job that failed leaves the roles' log behind, where its reader is told to look. */
const keepLog = (file: string, say: DemoFrame['say']): void => {
  if (!existsSync(file)) return; // the platform never started
  const kept = join(tmpdir(), `dsec-demo-${process.pid}.log`);
  copyFileSync(file, kept);
  say(`the roles' log is kept in ${kept}`);
};

await main(demo);
