/**
 * Forks of a sandbox that has written 500 MB: 16 and 256 in one command. Time per child from the call until all of them have run a
 * command, and what the node's disk takes for 16 beside 16 copies of the upper. `-- <MiB> <many>`: size of the upper, the larger group.
 */
import { statfsSync } from 'node:fs';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { inFlight, runBench, timed } from './harness.ts';

const [UPPER_MIB = 500, MANY = 256] = process.argv.slice(2).map(Number);
const FEW = 16;

const usedMiB = (dir: string): number => {
  const { blocks, bfree, bsize } = statfsSync(dir);
  return ((blocks - bfree) * bsize) / 2 ** 20;
};

await runBench('fork', { msPerChild16: '≤50', msPerChild256: '≤50', diskPercentOfCopy: '≤10' }, async (say) => {
  const host = await startTestPlatform({ logLevel: 'error' });
  const dsec = await connect({ contextFile: host.platform.contextFile });
  try {
    await using origin = await dsec.runContainer({ image: 'small', memoryLimitMb: 64, pidsLimit: 16 });
    const written = await origin.runShell(`for i in $(seq ${UPPER_MIB}); do dd if=/dev/urandom of=/w/f$i bs=1M count=1 2>/dev/null; done`, {
      timeoutMs: 600_000,
    });
    if (!written.ok) throw new Error(written.stderr);
    const fork = async (count: number) => {
      await origin.exec(['sh', '-c', `dd if=/dev/urandom of=/w/f1 bs=1M count=1 2>/dev/null`]); // a state that nobody has captured
      const before = usedMiB(host.dir);
      const { ms, value } = await timed(async () => {
        const group = await origin.fork(count, { timeoutMs: 300_000 });
        if (group.failures.length > 0) throw group.failures[0]?.error;
        await inFlight(16, count, async (n) => void (await (group.sandboxes[n] as Sandbox).exec(['stat', `/w/f${UPPER_MIB}`])));
        return group;
      });
      const disk = usedMiB(host.dir) - before;
      await value.stopAll();
      say(`${count} forks: ${Math.round(ms)} ms, ${Math.round(disk)} MiB`);
      return { perChildMs: ms / count, disk };
    };
    const few = await fork(FEW);
    const many = await fork(MANY);
    return { msPerChild16: few.perChildMs, msPerChild256: many.perChildMs, diskPercentOfCopy: (few.disk / (FEW * UPPER_MIB)) * 100 };
  } finally {
    await dsec.close();
    await host.close();
  }
});
