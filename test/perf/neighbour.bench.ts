/**
 * `neighbour`: what a fork bomb in a sandbox limited to half a processor costs the commands of another sandbox. Rounds with and without
 * the bomb alternate, so that whatever else the machine does meanwhile falls on both; the bomb starts anew in every round.
 */
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const ROUNDS = Number(process.argv[2] ?? 10);
const EXECS = 200;
const WARM_UP = 100;
const BOMB = 'f() { f | f & }; f; sleep 1000';
/** The bomb has filled its sandbox by then: it makes thousands of processes a second. */
const BOMB_SECONDS = 120;

const execMs = async (box: Sandbox, count: number): Promise<number[]> => {
  const samples: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const { ms, value } = await timed(() => box.exec(['/bin/true']));
    if (!value.ok) throw new Error(`exit ${value.exitCode}`);
    samples.push(ms);
  }
  return samples;
};

await runBench('neighbour', { vsIdle: '≤ 3' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const neighbour = await dsec.runContainer({ image: 'small' });
    const bombed = await dsec.runContainer({ image: 'small', cpuCoresLimit: 0.5, pidsLimit: 128, memoryLimitMb: 128 });
    await execMs(neighbour, WARM_UP);
    const idle: number[] = [];
    const beside: number[] = [];
    for (let round = 1; round <= ROUNDS; round += 1) {
      idle.push(...(await execMs(neighbour, EXECS)));
      const bomb = await bombed.start(['sh', '-c', BOMB], { timeoutMs: BOMB_SECONDS * 1_000 });
      beside.push(...(await execMs(neighbour, EXECS)));
      await bomb.kill();
      say(`round ${round}: p99 ${percentile(idle, 0.99).toFixed(2)} ms without, ${percentile(beside, 0.99).toFixed(2)} ms with it`);
    }
    await dsec.close();
    const idleExecP99Ms = percentile(idle, 0.99);
    const execP99Ms = percentile(beside, 0.99);
    return { idleExecP50Ms: median(idle), idleExecP99Ms, execP50Ms: median(beside), execP99Ms, vsIdle: execP99Ms / idleExecP99Ms };
  } finally {
    await test.close();
  }
});
