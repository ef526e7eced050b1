/** `churn`: create + one exec + stop per second, at 1, 4 and 16 in flight, against the same with crun alone at 4. */
import { join } from 'node:path';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { openCrun } from './crun.ts';
import { inFlight, runBench, timed } from './harness.ts';

const CYCLES = 200;

await runBench('churn', { vsCrun4: '≥ 2' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const cycle = async () => {
      const box = await dsec.runContainer({ image: 'small', memoryLimitMb: 256, pidsLimit: 128 });
      const { exitCode } = await box.exec(['/bin/true']);
      if (exitCode !== 0) throw new Error(`exit ${exitCode}`);
      await box.stop();
    };
    await inFlight(4, 40, cycle);
    const perSecond = async (width: number, work: () => Promise<void>): Promise<number> => {
      const { ms } = await timed(() => inFlight(width, CYCLES, work));
      say(`${width} in flight: ${((CYCLES * 1_000) / ms).toFixed(1)} per second`);
      return (CYCLES * 1_000) / ms;
    };
    const perSecond1 = await perSecond(1, cycle);
    const perSecond4 = await perSecond(4, cycle);
    const perSecond16 = await perSecond(16, cycle);
    using crun = openCrun(join(test.dir, 'root'));
    await crun.cycle();
    const crunPerSecond4 = await perSecond(4, () => crun.cycle());
    await dsec.close();
    return { perSecond1, perSecond4, perSecond16, vsCrun4: perSecond4 / crunPerSecond4, crunPerSecond4 };
  } finally {
    await test.close();
  }
});
