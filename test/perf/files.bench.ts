/**
 * Trees in and out of a sandbox against `tar | tar` on the host: one file of 1 GiB, and 10,000 files of 4 KiB. Times in parts of
 * the host's, both over warm caches; the middle of three runs each. Beside them: how much memory the Edge takes for it, and trees
 * of 100,000 files and of a sparse file of 2 GiB, in seconds.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { median, runBench, timed } from './harness.ts';

const RUNS = 3;
const GIB = 2 ** 30;
const SMALL_FILES = 10_000;
const MANY_FILES = 100_000;
const SMALL_BYTES = 4_096;
const FILES_PER_DIRECTORY = 100;

const makeGib = (dir: string): void => {
  mkdirSync(dir);
  execFileSync('dd', ['if=/dev/urandom', `of=${dir}/gib`, 'bs=1M', `count=${GIB / 2 ** 20}`, 'status=none']);
};

const makeFiles = (dir: string, count: number): void => {
  for (let n = 0; n < count; n += 1) {
    const sub = join(dir, `d${Math.floor(n / FILES_PER_DIRECTORY)}`);
    if (n % FILES_PER_DIRECTORY === 0) mkdirSync(sub, { recursive: true });
    writeFileSync(join(sub, `f${n}`), Buffer.alloc(SMALL_BYTES, n));
  }
};

const hostTar = (from: string, to: string): void => {
  mkdirSync(to);
  execFileSync('sh', ['-c', 'tar -C "$0" -cf - . | tar -C "$1" -xf -', from, to]);
};

/** Peak resident memory of the Edge since it was last reset, in MiB. */
const edgePeakMiB = (host: TestPlatform): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${host.platform.pids().edge}/status`, 'utf8'))?.[1]) / 1_024;
const resetPeak = (host: TestPlatform): void => writeFileSync(`/proc/${host.platform.pids().edge}/clear_refs`, '5');

type Times = { readonly up: number; readonly down: number; readonly host: number };

const measure = async (box: Sandbox, work: string, source: string): Promise<Times> => {
  const times: { up: number[]; down: number[]; host: number[] } = { up: [], down: [], host: [] };
  for (let run = 0; run < RUNS; run += 1) {
    const target = join(work, 'out');
    times.host.push((await timed(async () => hostTar(source, target))).ms);
    rmSync(target, { recursive: true });
    times.up.push((await timed(() => box.files.uploadTree(source, '/w/tree'))).ms);
    times.down.push((await timed(() => box.files.downloadTree('/w/tree', target))).ms);
    execFileSync('diff', ['-r', source, target]);
    rmSync(target, { recursive: true });
    await box.files.remove('/w/tree', { recursive: true });
  }
  return { up: median(times.up), down: median(times.down), host: median(times.host) };
};

await runBench('files', { upGibVsTar: '', downGibVsTar: '', upSmallVsTar: '', downSmallVsTar: '' }, async (say) => {
  const host = await startTestPlatform();
  const dsec = await connect({ contextFile: host.platform.contextFile });
  const work = mkdtempSync(join(tmpdir(), 'dsec-bench-files-'));
  try {
    const box = await dsec.runContainer({ image: 'small', memoryLimitMb: 2_048, cpuCoresLimit: 2 });
    makeGib(join(work, 'gib'));
    makeFiles(join(work, 'small'), SMALL_FILES);
    resetPeak(host);
    const gib = await measure(box, work, join(work, 'gib'));
    say(`1 GiB: up ${Math.round(gib.up)} ms, down ${Math.round(gib.down)} ms, tar | tar ${Math.round(gib.host)} ms`);
    const small = await measure(box, work, join(work, 'small'));
    say(`${SMALL_FILES} files: up ${Math.round(small.up)} ms, down ${Math.round(small.down)} ms, tar | tar ${Math.round(small.host)} ms`);
    makeFiles(join(work, 'many'), MANY_FILES);
    const many = await timed(async () => {
      await box.files.uploadTree(join(work, 'many'), '/w/many');
      await box.files.downloadTree('/w/many', join(work, 'many-back'));
    });
    mkdirSync(join(work, 'sparse'));
    execFileSync('truncate', ['-s', '2G', join(work, 'sparse/file')]);
    const sparse = await timed(() => box.files.uploadTree(join(work, 'sparse'), '/w/sparse'));
    return {
      upGibVsTar: gib.up / gib.host,
      downGibVsTar: gib.down / gib.host,
      upSmallVsTar: small.up / small.host,
      downSmallVsTar: small.down / small.host,
      edgePeakRssMib: edgePeakMiB(host),
      manyRoundTripSeconds: many.ms / 1_000,
      sparseUpSeconds: sparse.ms / 1_000,
    };
  } finally {
    await dsec.close();
    await host.close();
    rmSync(work, { recursive: true, force: true });
  }
});
