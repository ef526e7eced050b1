/**
 * `chaos`: minutes of mixed load (create, exec, stop, quota changes; real containers on three Edges, R3) while a random role or nats-server is killed
 * with SIGKILL every 5 to 15 seconds.
 *
 *   npm run bench -- chaos [seconds] [workers]      600 and 6 by default
 */
import { runChaos } from '#test/helpers/chaos/run.ts';
import { startTestCluster } from '#test/helpers/cluster.ts';
import { runBench } from './harness.ts';

const [seconds = 600, workers = 6] = process.argv.slice(2).map(Number);

await runBench('chaos', { lost: '0', doubled: '0', orphaned: '0', quotaDrift: '0' }, async (say) => {
  const host = await startTestCluster({ edges: 3 });
  try {
    const { acked, lost, doubled, orphaned, quotaDrift, quotaFindings, leases, quotaChanges, kills, refused } = await runChaos({
      host,
      seconds,
      workers,
      everyMs: [5_000, 15_000],
      say,
    });
    say(`${kills.length} kills: ${kills.map(({ name, atMs }) => `${name} at ${(atMs / 1_000).toFixed(1)} s`).join(', ')}`);
    for (const [code, times] of refused) say(`${times} calls ended with ${code}`);
    say(`${quotaChanges} changes of the quota, ${leases} leases`);
    for (const finding of [...lost, ...doubled, ...orphaned, ...quotaFindings]) say(finding);
    return { acked, lost: lost.length, doubled: doubled.length, orphaned: orphaned.length, quotaDrift };
  } finally {
    await host.close();
  }
});
