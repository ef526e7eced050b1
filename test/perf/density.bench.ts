/**
 * `density`: live idle containers on this machine, created by one burst: time until all run, memory of each all told, and
 * what an exec in a random one costs beside an exec in a lone one.
 */
import { readFileSync } from 'node:fs';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const LIVE = Number(process.argv[2] ?? 3_200);
const EXECS = 500;
const WARM_UP = 50;

const kibOf = (file: string, field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(file, 'utf8'))?.[1] ?? Number.NaN);
const availableMiB = (): number => kibOf('/proc/meminfo', 'MemAvailable') / 1024;

const execMs = async (count: number, pick: () => Sandbox): Promise<number[]> => {
  const samples: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const box = pick();
    const { ms, value } = await timed(() => box.exec(['/bin/true']));
    if (!value.ok) throw new Error(`${box.id}: exit ${value.exitCode}`);
    samples.push(ms);
  }
  return samples;
};

await runBench('density', { live: '3200', mibPerSandbox: '≤ 1.5', execP99Ms: '≤ 5 × idleExecP99Ms', edgeRssMib: '≤ 400' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const options = { image: 'small', memoryLimitMb: 16, pidsLimit: 16, ttlTotal: 3_600 };
    const lone = await dsec.runContainer(options);
    await execMs(WARM_UP, () => lone);
    const idle = await execMs(EXECS, () => lone);
    const before = availableMiB();
    const { ms, value: group } = await timed(() => dsec.runContainers(options, { count: LIVE - 1, timeoutMs: 300_000 }));
    if (group.failures[0]) say(`${group.failures.length} failed: ${group.failures[0].error.code}: ${group.failures[0].error.message}`);
    const boxes = [lone, ...group.sandboxes];
    say(`${boxes.length} live after ${(ms / 1_000).toFixed(1)} s`);
    const mibPerSandbox = (before - availableMiB()) / group.sandboxes.length;
    const edgeRssMib = kibOf(`/proc/${test.platform.pids().edge}/status`, 'VmRSS') / 1024;
    const random = () => boxes[Math.floor(Math.random() * boxes.length)] as Sandbox;
    await execMs(WARM_UP, random);
    const dense = await execMs(EXECS, random);
    const { ms: stopMs } = await timed(() => group.stopAll({ timeoutMs: 300_000 }));
    say(`all stopped after ${(stopMs / 1_000).toFixed(1)} s`);
    await lone.stop();
    await dsec.close();
    return {
      live: boxes.length,
      secondsToAll: ms / 1_000,
      mibPerSandbox,
      execP50Ms: median(dense),
      execP99Ms: percentile(dense, 0.99),
      idleExecP99Ms: percentile(idle, 0.99),
      edgeRssMib,
      secondsToStopAll: stopMs / 1_000,
    };
  } finally {
    await test.close();
  }
});
