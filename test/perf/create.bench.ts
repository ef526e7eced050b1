/** `create`: request sent → `SandboxStarted` seen by the SDK, idle, against the bare launcher and `crun run`. */
import { join } from 'node:path';
import { LayerCatalog } from '#runtime/images/mod.ts';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { openBareLauncher } from './bare-launcher.ts';
import { openCrun } from './crun.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const ROUNDS = 200;
const WARM_UP = 20;

await runBench('create', { createP50Ms: '', vsLauncher: '≤ 3' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const digest = new LayerCatalog(test.store).resolve('small');
    const bare = await openBareLauncher(test.dir, digest, test.store.pathOf(digest));
    using crun = openCrun(join(test.dir, 'root'));
    const create: number[] = [];
    const launch: number[] = [];
    const reference: number[] = [];
    // Interleaved, so that whatever else the machine does falls on all three alike.
    for (let i = 0; i < WARM_UP + ROUNDS; i += 1) {
      const { ms, value: box } = await timed(() => dsec.runContainer({ image: 'small', memoryLimitMb: 256, pidsLimit: 128 }));
      await box.stop();
      const launched = await bare.launch();
      await launched.destroy();
      const crunMs = await crun.run();
      if (i < WARM_UP) continue;
      create.push(ms);
      launch.push(launched.ms);
      reference.push(crunMs);
    }
    say(`bare launcher p50 ${median(launch).toFixed(2)} ms, crun run p50 ${median(reference).toFixed(2)} ms`);
    await bare.close();
    await dsec.close();
    return {
      createP50Ms: median(create),
      createP99Ms: percentile(create, 0.99),
      vsLauncher: median(create) / median(launch),
      vsCrun: median(create) / median(reference),
      launcherP50Ms: median(launch),
      crunP50Ms: median(reference),
    };
  } finally {
    await test.close();
  }
});
