/**
 * `pause`: a sandbox with 200 MiB of dirty memory of its own, and idle ones: time to paused, what comes back to the node, time of the first
 * command on it; against the freeze alone and the reclaim alone on a bare launcher in the same run. Optional arguments: rounds, idle sandboxes.
 *
 * What comes back net is counted, not read off MemAvailable: resident memory of the holder that is gone, less all that our zram device takes
 * (the room that earlier rounds left in it included, because the kernel does not give that back at once). Beside it stand what the sandbox's
 * state says, which the control group counts, pages that are only in the swap cache included, and MemAvailable. That moves with whatever any
 * program allocates or reads within the second that a pause takes, and does not see pages that processors keep in lists of their own: it is
 * right on a machine where nothing else happens, and there alone.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { firstLine } from '#test/helpers/commands.ts';
import { buildHolderLayer, memoryHolder } from '#test/helpers/memory-holder.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { LauncherStand } from '#test/kernel/launcher-stand.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const HELD_MIB = 200;
const ROUNDS = Number(process.argv[2] ?? 7);
const IDLE = Number(process.argv[3] ?? 100);
const SWAP_MIB = 4_096;
const PROGRAM = 'memory-holder';

const readNumber = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? Number.NaN);
/** Free pages that processors keep in lists of their own are in no count of /proc/meminfo, and what a pause frees goes there first. */
const processorsOwnMiB = (): number => {
  const counts = readFileSync('/proc/zoneinfo', 'utf8').matchAll(/^\s+count:\s+(\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0) / 256;
};
const availableMiB = (): number => readNumber(readFileSync('/proc/meminfo', 'utf8'), /^MemAvailable:\s+(\d+) kB/m) / 1_024 + processorsOwnMiB();

/** What the copies take in our zram device, whose number the launcher writes down; 0 before there is one. */
const copiesMiB = (runDir: string): number => {
  try {
    const device = readFileSync(join(runDir, 'swap'), 'utf8').trim();
    return Number(readFileSync(`/sys/block/zram${device}/mm_stat`, 'utf8').trim().split(/\s+/)[2]) / 2 ** 20;
  } catch {
    return 0;
  }
};

/** Resident memory of every process of that name, on the host. */
const residentMiB = (): number => {
  let sum = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== PROGRAM) continue;
      sum += readNumber(readFileSync(`/proc/${pid}/status`, 'utf8'), /^VmRSS:\s+(\d+) kB/m) / 1_024;
    } catch {
      // it ended meanwhile
    }
  }
  return sum;
};

/** CPU time of a process's children that have ended: of the launcher's workers. */
const childrenCpuMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[13]) + Number(fields[14])) * 10; // cutime, cstime in ticks of 10 ms
};

type Round = {
  readonly pauseMs: number;
  readonly rssBack: number;
  readonly netBack: number;
  readonly saidBack: number;
  readonly availableBack: number;
  readonly firstMs: number;
  readonly touchMs: number;
};
type Memory = { readonly rss: number; readonly copies: number; readonly available: number };
const memory = (runDir: string): Memory => ({ rss: residentMiB(), copies: copiesMiB(runDir), available: availableMiB() });

const holding = async (dsec: DsecClient, key: string): Promise<{ sandbox: Sandbox; holder: Command; filled: string }> => {
  const sandbox = await dsec.runContainer({ image: 'small', toolkits: ['holder'], memoryLimitMb: 512, key });
  const holder = await sandbox.start([`/opt/${PROGRAM}`, String(HELD_MIB)], { stdin: 'open' });
  return { sandbox, holder, filled: (await firstLine(holder)).split(' ')[1] ?? '' };
};

const oneRound = async (dsec: DsecClient, runDir: string, key: string): Promise<Round> => {
  const { sandbox, holder, filled } = await holding(dsec, key);
  const before = memory(runDir);
  const { ms: pauseMs } = await timed(() => sandbox.pause());
  const after = memory(runDir);
  const { memoryGivenBackMiB } = await sandbox.refresh();
  const { ms: firstMs, value } = await timed(() => sandbox.exec(['/bin/true']));
  if (value.exitCode !== 0) throw new Error(`exit ${value.exitCode}`);
  const touched = await timed(async () => {
    await holder.stdin.write('again\n');
    await holder.stdin.close();
    return (await holder.result()).stdout;
  });
  if (touched.value !== `filled ${filled}\nsum ${filled}\n`) throw new Error('what came back is not what was there');
  await sandbox.delete();
  const back = before.rss - after.rss;
  return {
    pauseMs,
    rssBack: back / before.rss,
    netBack: (back - after.copies) / before.rss,
    saidBack: (memoryGivenBackMiB ?? 0) / HELD_MIB,
    availableBack: (after.available - before.available) / HELD_MIB,
    firstMs,
    touchMs: touched.ms,
  };
};

/** The two steps on a launcher without a platform. */
const bare = async (say: (line: string) => void): Promise<void> => {
  const stand = new LauncherStand();
  try {
    const client = await stand.connect();
    await client.swapOn(SWAP_MIB);
    const tool = stand.image('tool', (root) => {
      mkdirSync(join(root, 'bin'));
      cpSync(memoryHolder(), join(root, 'bin', PROGRAM));
    });
    await client.mountImage(tool.digest, tool.path);
    const freezes: number[] = [];
    const reclaims: number[] = [];
    const cpu: number[] = [];
    const costs: number[] = [];
    for (let n = 1; n <= ROUNDS; n += 1) {
      const sandbox = await stand.sandbox(n, { layers: [stand.base.digest, tool.digest], memoryMiB: 512 });
      await sandbox.start(`sleep 1000 | /bin/${PROGRAM} ${HELD_MIB} >/said`);
      while ((await sandbox.run('cat /said')).stdout === '');
      freezes.push((await timed(() => client.freeze(sandbox.id))).ms);
      const cpuBefore = childrenCpuMs(client.info.pid);
      const { ms, value } = await timed(() => client.reclaim(sandbox.id));
      reclaims.push(ms);
      cpu.push(childrenCpuMs(client.info.pid) - cpuBefore);
      costs.push(value.costBytes / value.swappedBytes);
      sandbox.close();
      await client.destroy({ id: sandbox.id });
    }
    say(
      `freeze alone ${median(freezes).toFixed(2)} ms, reclaim alone ${median(reclaims).toFixed(0)} ms (${median(cpu).toFixed(0)} ms of CPU), ` +
        `compressed copies take ${(median(costs) * 100).toFixed(0)} % (medians of ${ROUNDS})`,
    );
    await client.swapOff();
  } finally {
    await stand.close();
  }
};

const idle = async (dsec: DsecClient): Promise<{ pauses: number[]; resumes: number[] }> => {
  const group = (await dsec.runContainers({ image: 'small', memoryLimitMb: 32 }, { count: IDLE })).orThrow();
  const pauses: number[] = [];
  const resumes: number[] = [];
  for (const sandbox of group.sandboxes) pauses.push((await timed(() => sandbox.pause())).ms);
  for (const sandbox of group.sandboxes) resumes.push((await timed(() => sandbox.resume())).ms);
  await group.deleteAll();
  return { pauses, resumes };
};

await runBench('pause', { pauseMs: '≤ 500', rssBackPercent: '≥ 95', firstResultMs: '≤ 100' }, async (say) => {
  const host = await startTestPlatform({ logLevel: 'warn', overrides: { swapMiB: SWAP_MIB } });
  try {
    await buildHolderLayer(host);
    const dsec = await connect({ contextFile: host.platform.contextFile });
    const { runDir } = host.platform.config;
    await oneRound(dsec, runDir, 'warm-up'); // makes the swap, whose own table is no sandbox's
    const rounds: Round[] = [];
    for (let n = 0; n < ROUNDS; n += 1) rounds.push(await oneRound(dsec, runDir, `round-${n}`));
    const of = (pick: (round: Round) => number): number => median(rounds.map(pick));
    say(
      `${HELD_MIB} MiB: pause p90 ${percentile(
        rounds.map((r) => r.pauseMs),
        0.9,
      ).toFixed(0)} ms; touching all of it after the resume ${of((r) => r.touchMs).toFixed(0)} ms`,
    );
    const percents = (pick: (round: Round) => number): string => rounds.map((r) => `${(pick(r) * 100).toFixed(0)} %`).join(', ');
    say(`net per round ${percents((r) => r.netBack)}; as the state says ${percents((r) => r.saidBack)}`);
    say(`by MemAvailable, in which other programs count: ${percents((r) => r.availableBack)}`);
    const { pauses, resumes } = await idle(dsec);
    await dsec.close();
    await bare(say);
    return {
      pauseMs: of((r) => r.pauseMs),
      rssBackPercent: of((r) => r.rssBack) * 100,
      availableBackPercent: of((r) => r.netBack) * 100,
      firstResultMs: of((r) => r.firstMs),
      idlePauseMs: median(pauses),
      idleResumeMs: median(resumes),
    };
  } finally {
    await host.close();
  }
});
