/**
 * `control-plane`: creates per second, sustained, from the request to `SandboxStarted` seen by the caller, on a fleet whose sandboxes
 * are records only; every role on this machine, one copy of each stream and three; against the bare publish rate of the same streams
 * in the same run.
 *
 *     npm run bench -- control-plane [seconds=60] [groupSize=2048] [edges=16] [copies=1,3] [grouped,single]
 *
 * Groups follow one another with `AHEAD` of them under way; single creates go `SINGLES` at a time. Beside time on the clock it says what
 * processor time a create took, by process: that hardly depends on what else the machine does.
 * A profile of every role: a script that starts the inspector's profiler and writes the profile on `exit`, given to all of them with
 * `NODE_OPTIONS=--require=<file>`. (Node 20 refuses `--cpu-prof` there.)
 */
import { type ControlPlane, startControlPlane } from '#test/helpers/control-plane.ts';
import { shardsOf } from '#runtime/config.ts';
import { bareStream } from './bare-stream.ts';
import { processorMs } from './process-cost.ts';
import { type Figures, median, percentile, runBench } from './harness.ts';
import { listenForStarts, type Starts } from './starts.ts';

const SECONDS = Number(process.argv[2] ?? 60);
const GROUP = Number(process.argv[3] ?? 2_048);
const EDGES = Number(process.argv[4] ?? 16);
const COPIES = (process.argv[5] ?? '1,3').split(',');
const KINDS = (process.argv[6] ?? 'grouped,single').split(',');
const AHEAD = 3;
const SINGLES = 128;
const BARE_COMMITS = 20_000;
const STALL_MS = 15_000;
const OPTIONS = { image: 'small', memoryLimitMb: 16, pidsLimit: 16 };

type Sustained = { readonly perSecond: number; readonly latencies: readonly number[]; readonly stalled: boolean };

/** Keeps `ahead` requests of `size` under way for the time; counts what started, each from the moment of its request. */
const sustain = async (plane: ControlPlane, starts: Starts, size: number, ahead: number): Promise<Sustained> => {
  const dsec = await plane.connect();
  const before = starts.seen.size;
  const askedAt = new Map<string, number>();
  const startedAt = performance.now();
  const until = startedAt + SECONDS * 1_000;
  let asked = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < until) {
      const at = performance.now();
      const wait = { timeoutMs: 300_000 };
      const boxes = size === 1 ? [await dsec.runContainer(OPTIONS, wait)] : (await dsec.runContainers(OPTIONS, { ...wait, count: size })).orThrow().sandboxes;
      asked += boxes.length;
      for (const { id } of boxes) askedAt.set(id, at);
    }
  };
  await Promise.all(Array.from({ length: ahead }, worker));
  const isWhole = await starts.until(before + asked, STALL_MS);
  const latencies = [...askedAt].flatMap(([id, at]) => {
    const seen = starts.seen.get(id);
    return seen === undefined ? [] : [seen - at];
  });
  // Not by spreading: a call takes some 120,000 arguments, a minute has more starts.
  let lastAt = startedAt;
  for (const id of askedAt.keys()) lastAt = Math.max(lastAt, starts.seen.get(id) ?? 0);
  await dsec.close();
  return { perSecond: (latencies.length * 1_000) / (lastAt - startedAt), latencies, stalled: !isWhole };
};

/** Processor time of each process since it began. */
const costs = (plane: ControlPlane): Map<string, number> => {
  const sum = (pids: readonly (number | undefined)[]): number => pids.reduce<number>((total, pid) => total + (pid === undefined ? 0 : processorMs(pid)), 0);
  return new Map([
    ['bus', sum(plane.busPids)],
    ...plane.control.map((child, n): [string, number] => [n === 0 ? 'control' : 'placement', sum([child.pid])]),
    ['edges', sum(plane.fleet.map(({ pid }) => pid))],
    ['client', sum([process.pid])],
  ]);
};

const measure = async (replicas: 1 | 3, say: (line: string) => unknown) => {
  const plane = await startControlPlane({ fleet: [EDGES], replicas, shards: 2, lanes: 2, overrides: { maxSandboxes: 60_000 } });
  try {
    const starts = await listenForStarts(plane.servers, plane.project);
    const withCosts = async <T>(what: string, work: () => Promise<T>, countOf: (result: T) => number): Promise<T> => {
      const before = costs(plane);
      const result = await work();
      const each = [...costs(plane)].map(([name, ms]) => `${name} ${((ms - (before.get(name) ?? 0)) / countOf(result)).toFixed(3)}`);
      say(`R${replicas} ${what}: ms of processor time each: ${each.join(', ')}`);
      return result;
    };
    const bare = await withCosts(
      'bare stream',
      () => bareStream(plane.servers, shardsOf(plane.config), BARE_COMMITS),
      () => BARE_COMMITS,
    );
    const startsOf = ({ latencies }: Sustained): number => latencies.length;
    const none: Sustained = { perSecond: 0, latencies: [], stalled: false };
    const grouped = KINDS.includes('grouped') ? await withCosts('grouped', () => sustain(plane, starts, GROUP, AHEAD), startsOf) : none;
    const single = KINDS.includes('single') ? await withCosts('single', () => sustain(plane, starts, 1, SINGLES), startsOf) : none;
    await starts.close();
    for (const [what, { perSecond, latencies, stalled }] of Object.entries({ grouped, single }))
      say(
        `R${replicas} ${what}: ${perSecond.toFixed(0)}/s, p50 ${median(latencies).toFixed(0)} ms, p99 ${percentile(latencies, 0.99).toFixed(0)} ms${stalled ? ', SOME NEVER SEEN' : ''}`,
      );
    say(`R${replicas} bare stream: ${bare.toFixed(0)} commits/s`);
    return { bare, grouped, single };
  } finally {
    await plane.close();
  }
};

const say = (line: string): boolean => process.stderr.write(`control-plane: ${line}\n`);
const targets = { perSecondR1: '≥ 5000', perSecondR3: '≥ 3500' };
// Half of the measurement is for whoever looks for what binds: it leaves no figures behind.
if (COPIES.length === 1) await measure(COPIES[0] === '3' ? 3 : 1, say);
else
  await runBench('control-plane', targets, async (say): Promise<Figures> => {
    const one = await measure(1, say);
    const three = await measure(3, say);
    return {
      perSecondR1: one.grouped.perSecond,
      perSecondR3: three.grouped.perSecond,
      p50Ms: median(one.grouped.latencies),
      p99Ms: percentile(one.grouped.latencies, 0.99),
      // A create is two commits: the share of what the stream alone takes.
      vsBareStream: (2 * one.grouped.perSecond) / one.bare,
      singlePerSecondR1: one.single.perSecond,
      singlePerSecondR3: three.single.perSecond,
      singleP50Ms: median(one.single.latencies),
      singleP99Ms: percentile(one.single.latencies, 0.99),
    };
  });
