/**
 * `cost`: processor time of one create + exec + stop, and of one exec, by process. Unlike a rate it hardly changes while the
 * machine does other work, so it is what to look at while making things faster. Arguments: cycles, in flight.
 */
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { type Figures, inFlight, runBench } from './harness.ts';
import { COST_OWNERS, type Costs, costMeter, costOfOne } from './process-cost.ts';

const CYCLES = Number(process.argv[2] ?? 400);
const WIDTH = Number(process.argv[3] ?? 4);
const WARM_UP = 100;
const EXECS_PER_CYCLE = 5;

const totalOf = (costs: Costs): number => COST_OWNERS.reduce((total, owner) => total + costs[owner], 0);
const named = (what: string, costs: Costs): Figures => ({
  [`${what}CpuMs`]: totalOf(costs),
  ...Object.fromEntries(COST_OWNERS.map((owner) => [`${what}${owner[0]?.toUpperCase()}${owner.slice(1)}Ms`, costs[owner]])),
});

await runBench('cost', {}, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const options = { image: 'small', memoryLimitMb: 256, pidsLimit: 128 };
    const cycle = async () => {
      const box = await dsec.runContainer(options);
      const { exitCode } = await box.exec(['/bin/true']);
      if (exitCode !== 0) throw new Error(`exit ${exitCode}`);
      await box.stop();
    };
    const look = costMeter(test.platform);
    await inFlight(WIDTH, WARM_UP, cycle);
    const beforeCycles = look();
    await inFlight(WIDTH, CYCLES, cycle);
    const cycles = costOfOne(beforeCycles, look(), CYCLES);
    say(`${CYCLES} cycles, ${WIDTH} in flight`);
    const box = await dsec.runContainer(options);
    const exec = () => box.exec(['/bin/true']).then(() => undefined);
    await inFlight(WIDTH, WARM_UP, exec);
    const beforeExecs = look();
    await inFlight(WIDTH, CYCLES * EXECS_PER_CYCLE, exec);
    const execs = costOfOne(beforeExecs, look(), CYCLES * EXECS_PER_CYCLE);
    await box.stop();
    await dsec.close();
    return { ...named('cycle', cycles), ...named('exec', execs) };
  } finally {
    await test.close();
  }
});
