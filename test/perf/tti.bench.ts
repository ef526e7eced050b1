/**
 * `tti`, time to interactive: 100 creates at once, each until `node -v` has ended with 0 inside, against 100 × `node -v` at
 * once on the bare host. The base layer is a Debian root; the host's own Node lies above it, so that both run the same program: a
 * distribution's, which loads libraries, needs several times as long for the same answer.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEMO_PROJECT } from '#infra/demo/project.ts';
import { ensureImages } from '#infra/demo/images.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { ImageName } from '#bus/ids.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const COUNT = 100;
const run = promisify(execFile);

const atOnce = (work: () => Promise<unknown>): Promise<{ wallMs: number; each: number[] }> =>
  timed(() => Promise.all(Array.from({ length: COUNT }, async () => (await timed(work)).ms))).then(({ ms, value }) => ({ wallMs: ms, each: value }));

const NODE = '/usr/local/bin/node';
/** Found in the store after the first run. */
const nodeOfHost = async (store: PosixLayerStore): Promise<string> => {
  const name = ImageName.parse(`bench/node:${process.versions.node}`);
  const known = store.names.lookup(name);
  if (known && store.has(known.digest)) return name;
  const root = mkdtempSync(join(tmpdir(), 'dsec-tti-'));
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  copyFileSync(process.execPath, root + NODE);
  await buildLayer(store, { name, kind: 'toolkit', source: { type: 'directory', path: root } });
  rmSync(root, { recursive: true });
  return name;
};

await runBench('tti', { vsBare: '≤ 1.5' }, async (say) => {
  const layersDir = join(projectRoot(), '.cache/demo/layers');
  const store = new PosixLayerStore({ dir: layersDir });
  const images = await ensureImages(store, DEMO_PROJECT, say, new AbortController().signal);
  const toolkits = [await nodeOfHost(store)];
  const test = await startTestPlatform({ logLevel: 'warn', overrides: { layersDir } });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const options = { image: images.base, toolkits, memoryLimitMb: 256, cpuCoresLimit: 2, pidsLimit: 64 };
    const inside = async () => {
      const box = await dsec.runContainer(options);
      const version = await box.exec([NODE, '-v']);
      if (!version.ok) throw new Error(`exit ${version.exitCode}: ${version.stderr}`);
      return box;
    };
    await (await inside()).stop(); // the image is mounted and its pages are warm, as the host's own are
    const bare = await atOnce(() => run(process.execPath, ['-v']));
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
