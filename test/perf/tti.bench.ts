/**
 * `tti`, time to interactive: 100 creates at once, each until `node -v` has ended with 0 inside, against 100 × `node -v` at
 * once on the bare host. The base layer is a Debian root with Node.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEMO_PROJECT } from '#infra/demo/project.ts';
import { ensureImages } from '#infra/demo/images.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const COUNT = 100;
const run = promisify(execFile);

const atOnce = (work: () => Promise<unknown>): Promise<{ wallMs: number; each: number[] }> =>
  timed(() => Promise.all(Array.from({ length: COUNT }, async () => (await timed(work)).ms))).then(({ ms, value }) => ({ wallMs: ms, each: value }));

await runBench('tti', { vsBare: '≤ 1.5' }, async (say) => {
  const layersDir = join(projectRoot(), '.cache/demo/layers');
  const images = await ensureImages(new PosixLayerStore({ dir: layersDir }), DEMO_PROJECT, say, new AbortController().signal);
  const test = await startTestPlatform({ logLevel: 'warn', overrides: { layersDir } });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const options = { image: images.base, memoryLimitMb: 256, cpuCoresLimit: 2, pidsLimit: 64 };
    const inside = async () => {
      const box = await dsec.runContainer(options);
      const version = await box.exec(['node', '-v']);
      if (!version.ok) throw new Error(`exit ${version.exitCode}: ${version.stderr}`);
      return box;
    };
    await (await inside()).stop(); // the image is mounted and its pages are warm, as the host's own are
    const bare = await atOnce(() => run('node', ['-v']));
    const boxes: Awaited<ReturnType<typeof inside>>[] = [];
    const sandboxed = await atOnce(async () => boxes.push(await inside()));
    say(`bare host: median ${median(bare.each).toFixed(0)} ms, wall ${bare.wallMs.toFixed(0)} ms`);
    await Promise.all(boxes.map((box) => box.stop()));
    await dsec.close();
    return {
      medianMs: median(sandboxed.each),
      p95Ms: percentile(sandboxed.each, 0.95),
      p99Ms: percentile(sandboxed.each, 0.99),
      wallMs: sandboxed.wallMs,
      vsBare: median(sandboxed.each) / median(bare.each),
      bareMedianMs: median(bare.each),
    };
  } finally {
    await test.close();
  }
});
