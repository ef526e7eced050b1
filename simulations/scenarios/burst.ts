/**
 * A burst: jobs ask for thousands of sandboxes each within one second, and placements know nodes only by beats that are old.
 * What matters is how evenly nodes end up loaded, that none is lost and none is doubled. @paper §1 §7
 */
import type { ClientKey, ProjectName } from '#bus/ids.ts';
import { Process } from '../hosts/process.ts';
import { type Parts, PRODUCTION } from '../hosts/parts.ts';
import { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import { GOOD_LINK } from '../ports/link.ts';
import { specOf } from '../workload/spec.ts';
import { Tenant } from '../workload/tenant.ts';
import { capacityOf, PAPER_NODE } from './capacity.ts';
import { Figures, maxOverMeanOf } from './figures.ts';
import { guarded, Run, type RunOptions, type RunResult } from './run.ts';

export type BurstOptions = {
  readonly seed: number;
  readonly sandboxes: number;
  readonly nodes: number;
  readonly placements: number;
  readonly viewAgeMs: number;
  readonly jobs: number;
  /** Requests of at most so many sandboxes each; 256 and fewer are single requests, more are groups. */
  readonly perRequest: number;
  /** Jobs ask at any moment within so long. */
  readonly withinMs: number;
  /** Already there, on the first half of the nodes alone: what an earlier day has left. */
  readonly before: number;
  readonly parts?: Partial<Parts>;
  readonly trace?: Trace;
  readonly observers?: RunOptions['observers'];
  readonly say?: (run: Run, figures: Figures) => void;
};
export const BURST: BurstOptions = {
  seed: 1,
  sandboxes: 32_000,
  nodes: 160,
  placements: 4,
  viewAgeMs: 1_000,
  jobs: 1,
  perRequest: 32_000,
  withinMs: 900,
  before: 0,
};

export type BurstResult = RunResult & { readonly maxOverMean: number; readonly lost: number; readonly doubled: number; readonly figures: Figures };

const WARM_UP_MS = 8_000;
const SETTLE_MS = 8_000;
const BEFORE = 'before';
const LONGEST_MS = 60_000;

export const burst = (o: BurstOptions): BurstResult => {
  const figures = new Figures();
  const born = new Map<string, number>();
  let doubled = 0;
  const run = new Run({
    seed: o.seed,
    ...(o.trace ? { trace: o.trace } : {}),
    parts: { ...o.parts, choose: firstHalfFor(BEFORE, o.parts?.choose ?? PRODUCTION.choose, o.nodes) },
    tiebreak: 'fifo',
    keeping: 'lean',
    duplicateWindowMs: 30_000,
    oneIn: 4,
    nodes: o.nodes,
    capacity: capacityOf(PAPER_NODE),
    apiservers: 4,
    placements: o.placements,
    watchers: 2,
    shards: 4,
    lanes: 8,
    viewAgeMs: o.viewAgeMs,
    observers: [
      ...(o.observers ?? []),
      figures.observer,
      {
        stored: (_, commit) => {
          for (const event of commit?.events ?? []) {
            if (event.type !== 'SandboxAdmitted') continue;
            const item = `${event['requestId']}/${event['index']}`;
            const before = born.get(item) ?? 0;
            born.set(item, before + 1);
            if (before > 0) doubled += 1;
          }
        },
      },
    ],
  });
  const random = Random.fromSeed(o.seed).child('burst');
  let maxOverMean = Number.POSITIVE_INFINITY;
  const result = guarded(run, () => {
    const { cluster } = run;
    cluster.start();
    run.until(WARM_UP_MS);
    if (o.before > 0) {
      ask(run, new Figures(), { ...o, sandboxes: o.before, jobs: 1 }, BEFORE, random.child(BEFORE));
      run.until(WARM_UP_MS + SETTLE_MS);
    }
    const startMs = run.nowMs;
    for (let job = 0; job < o.jobs; job += 1) ask(run, figures, o, `job-${job}`, random.child(`job ${job}`), job);
    run.until(startMs + LONGEST_MS, 250, () => {
      figures.tick(run);
      o.say?.(run, figures);
      return figures.started >= o.sandboxes;
    });
    maxOverMean = maxOverMeanOf(cluster);
  });
  return { ...result, maxOverMean, lost: o.sandboxes - figures.started, doubled, figures };
};

/** The same policy, but one project gets only the first half of the nodes. */
const firstHalfFor =
  (project: string, policy: Parts['choose'], nodes: number): Parts['choose'] =>
  (input) =>
    policy(input.project === project ? { ...input, fleet: input.fleet.filter(({ edge }) => Number(edge.slice(1)) < nodes / 2) } : input);

const ask = (run: Run, figures: Figures, o: BurstOptions, project: string, random: Random, job = 0): void => {
  const { cluster } = run;
  const process = new Process(`tenant-${project}`, cluster.ground, random, GOOD_LINK, { skewMs: 0, driftPpm: 0 });
  const events = { running: (ms: number) => figures.running(ms), ended: (state: 'ended' | 'refused' | 'lost') => figures.over(state, undefined) };
  const tenant = new Tenant(cluster, process, project as ProjectName, events, { looksAgain: false });
  const spec = specOf({ memoryMiB: random.pick([1_024, 2_048, 4_096]), cpuMillis: random.pick([1_000, 2_000, 4_000]), totalMs: 86_400_000, idleMs: null });
  const share = Math.floor(o.sandboxes / o.jobs) + (job < o.sandboxes % o.jobs ? 1 : 0);
  for (let given = 0; given < share; given += o.perRequest) {
    const plan = {
      key: `${project}-${given}` as ClientKey,
      count: Math.min(o.perRequest, share - given),
      spec,
      timeoutMs: 120_000,
      useMs: () => 3_600_000,
      asks: () => [],
      endBy: 'StopSandbox' as const,
    };
    cluster.time.after(random.between(0, o.withinMs) * 1_000, 'job asks', () => tenant.create(plan));
  }
};
