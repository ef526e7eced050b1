/**
 * `leftovers`: 1,000 sandboxes made and stopped, half of them with a disk of their own, and 30 kills of the Edge at random moments
 * with creates and deletes in flight; then what the kernel and the disk hold is compared with before. Target: nothing more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findLeftovers } from '#infra/demo/leftovers.ts';
import { cgroupNameOf } from '#runtime/config.ts';
import { connect } from '#sdk/mod.ts';
import { killEdges } from '#test/helpers/edge-kills.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { type Traces, tracesOf } from '#test/helpers/traces.ts';
import { inFlight, runBench } from './harness.ts';

const CREATES = 1_000;
const AT_ONCE = 16;
const EDGE_KILLS = 30;
const SETTLE_MS = 30_000;

/** What there is more of than before, summed over everything that is counted. */
const surplus = (before: Traces, now: Traces): number =>
  Object.entries(now).reduce((n, [what, count]) => n + Math.max(0, count - before[what as keyof Traces]), 0);

await runBench('leftovers', { leftovers: '0' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'error', restartMaxMs: 100 });
  const owned = { cgroupName: cgroupNameOf(test.platform.config), dirs: [test.dir], namespaces: { names: [], atTicks: 0 } };
  let left: number;
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const cycle = async (n: number) => (await dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: n % 2 ? 16 : undefined })).stop();
    for (const n of [0, 1]) await cycle(n);
    const before = tracesOf(test);
    const startedAt = performance.now();
    await inFlight(AT_ONCE, CREATES, async (n) => void (await cycle(n)));
    say(`${CREATES} made and stopped in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    const alive = await killEdges({
      host: test,
      dsec,
      rounds: EDGE_KILLS,
      createsPerRound: 10,
      launcherEvery: 5,
      tag: 'leftovers',
      onRound: async (round) => say(`Edge killed ${round + 1} times`),
    });
    await Promise.all(alive.map((sandbox) => sandbox.delete()));
    const giveUpAt = performance.now() + SETTLE_MS;
    for (left = surplus(before, tracesOf(test)); left > 0 && performance.now() < giveUpAt; left = surplus(before, tracesOf(test))) await delay(200);
    say(`more than before: ${left}`);
    await dsec.close();
  } finally {
    await test.close();
  }
  const after = Object.values(findLeftovers(owned)).flat();
  for (const line of after) say(`left behind: ${line}`);
  return { creates: CREATES, edgeKills: EDGE_KILLS, leftovers: left + after.length };
});
