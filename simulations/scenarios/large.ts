/**
 * What all large scenarios share: a fleet of the paper's size in lean keeping, jobs that arrive and end, faults that a scenario
 * brings, figures over virtual time, and the two phases. Checkers follow one actor in sixteen, on a few nodes all.
 */
import type { ClientKey, ProjectName } from '#bus/ids.ts';
import type { Parts } from '../hosts/parts.ts';
import { Process } from '../hosts/process.ts';
import { TRUE_TIME } from '../kernel/clock.ts';
import { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import { GOOD_LINK } from '../ports/link.ts';
import { GOOD_MACHINE } from '../ports/machine-quality.ts';
import { CLOUD_OVERFLOW, isCloudEligible, limitsAsked } from '../workload/distributions.ts';
import { type ImageShare, imagesOf, withImage } from '../workload/images.ts';
import { specOf } from '../workload/spec.ts';
import { type GroupPlan, Tenant } from '../workload/tenant.ts';
import { type JobPlan, Trainer } from '../workload/trainer.ts';
import { capacityOf, PAPER_NODE } from './capacity.ts';
import { Figures, useOf } from './figures.ts';
import { guarded, Run, type RunOptions, type RunResult } from './run.ts';

/** One job: so many sandboxes at once, each used for a while. */
export type Job = { readonly atMs: number; readonly sandboxes: number; readonly useMs: (index: number) => number };

export type LargeOptions = {
  readonly seed: number;
  readonly nodes: number;
  readonly jobs: (random: Random) => Iterable<Job>;
  /** End of the safety phase. */
  readonly safetyMs: number;
  readonly livenessMs: number;
  readonly projects: number;
  readonly tickMs: number;
  /** Brings the scenario's faults; called once everything has started. */
  readonly during?: (run: Run, tenants: readonly Tenant[], random: Random, trainers: readonly Trainer[]) => void;
  /** Above the paper's share of local use, what is eligible goes to the cloud: counted, and not simulated further. */
  readonly overflow?: boolean;
  /** Each job brings images of its own, a request for each, which nodes fetch; otherwise all share one that lies on every node. */
  readonly images?: boolean;
  /** What is asked of each sandbox while it runs. */
  readonly asks?: GroupPlan['asks'];
  /** What is asked for has an owner with a lease on it, and this policy for when that is lost. */
  readonly owned?: (random: Random) => Pick<JobPlan, 'leaseMs' | 'graceMs' | 'onOwnerLost'>;
  /** When faults end, before everything is asked to end. */
  readonly calm?: (run: Run) => void;
  readonly parts?: Partial<Parts>;
  readonly trace?: Trace;
  readonly cluster?: Partial<RunOptions>;
  readonly observers?: RunOptions['observers'];
  readonly say?: (run: Run, figures: Figures) => void;
};
export type LargeResult = RunResult & { readonly figures: Figures };

/** Nodes have registered and beaten, placements have heard them. */
export const WARM_UP_MS = 5_000;

/** As many as come in the full unit's ramp: an end costs the bus and the nodes as much as a create. */
const ENDED_PER_SECOND = 5_000;
/** On so few nodes checkers follow every actor. */
const FOLLOWED_WHOLE = 8;

export const large = (o: LargeOptions): LargeResult => {
  const figures = new Figures();
  const run = new Run({
    seed: o.seed,
    ...(o.trace ? { trace: o.trace } : {}),
    ...(o.parts ? { parts: o.parts } : {}),
    tiebreak: 'fifo',
    keeping: 'lean',
    duplicateWindowMs: 20_000,
    oneIn: o.nodes <= FOLLOWED_WHOLE ? 1 : 16,
    nodes: o.nodes,
    capacity: capacityOf(PAPER_NODE),
    apiservers: 4,
    placements: 4,
    watchers: 2,
    shards: 8,
    lanes: 8,
    viewAgeMs: 0,
    machineOf: () => ({ ...GOOD_MACHINE, agentEndsLife: false }),
    hasLayerStore: o.images ?? false,
    ...o.cluster,
    observers: [figures.observer, ...(o.observers ?? [])],
  });
  const random = Random.fromSeed(o.seed).child('large');
  const result = guarded(run, () => {
    const { cluster } = run;
    cluster.start();
    const look = () => {
      figures.tick(run);
      o.say?.(run, figures);
      return false;
    };
    run.until(WARM_UP_MS);
    const tenants = Array.from({ length: o.projects }, (_, i) => tenantOf(run, figures, `job-${i}`, random.child(`tenant ${i}`)));
    const trainers: Trainer[] = [];
    feed(run, tenants, trainers, o, random, figures);
    o.during?.(run, tenants, random.child('during'), trainers);
    run.until(o.safetyMs, o.tickMs, look);
    o.calm?.(run);
    for (const trainer of trainers) trainer.stop();
    for (const tenant of tenants) tenant.finish(ENDED_PER_SECOND / tenants.length);
    run.untilQuiet(o.safetyMs + o.livenessMs, () => look() || tenants.every(({ left }) => left === 0));
    run.check();
  });
  return { ...result, figures };
};

const tenantOf = (run: Run, figures: Figures, project: string, random: Random): Tenant => {
  const process = new Process(`tenant-${project}`, run.cluster.ground, random, GOOD_LINK, TRUE_TIME);
  const events = {
    running: (ms: number) => figures.running(ms),
    ended: (state: 'ended' | 'refused' | 'lost', error: { readonly code: string } | null) => figures.over(state, error?.code),
  };
  return new Tenant(run.cluster, process, project as ProjectName, events, { looksAgain: false });
};

/** One job is scheduled at a time: a day has thousands. */
const feed = (
  run: Run,
  tenants: readonly Tenant[],
  trainers: Trainer[],
  { jobs, owned, overflow = false, images = false, asks = () => [] }: LargeOptions,
  large: Random,
  figures: Figures,
): void => {
  const cloud = large.child('cloud');
  const coming = jobs(large.child('jobs'))[Symbol.iterator]();
  const random = large.child('plans');
  let number = 0;
  const next = () => {
    const { value: job, done } = coming.next();
    if (done || !job) return;
    run.cluster.time.after((job.atMs - run.nowMs) * 1_000, 'job arrives', () => {
      const tenant = tenants[number % tenants.length];
      const spec = specOf({ ...limitsAsked(random), totalMs: 86_400_000, idleMs: null });
      const key = `job-${number}` as ClientKey;
      number += 1;
      const away = overflow && useOf(run.cluster) > CLOUD_OVERFLOW.aboveUse ? eligibleOf(job.sandboxes, cloud) : 0;
      figures.overflowed += away;
      if (away === job.sandboxes) return next();
      const count = job.sandboxes - away;
      const plan = { key, count, spec, timeoutMs: 300_000, useMs: job.useMs, asks, endBy: 'DeleteSandbox' as const };
      const groups = images ? [...imagesOf(random.child(`images ${number}`), count)].map((share, n) => ofImage(plan, share, n)) : [plan];
      if (tenant && owned) {
        const asked = { key, lifeMs: 86_400_000, ...owned(random.child(`owner ${number}`)), groups };
        const trainer = new Trainer(run.cluster, tenant, asked, random.child(`trainer ${number}`));
        trainers.push(trainer);
        trainer.start();
      } else for (const group of groups) tenant?.create(group);
      next();
    });
  };
  next();
};

const ofImage = (plan: GroupPlan, share: ImageShare, n: number): GroupPlan => ({
  ...plan,
  key: `${plan.key}-${n}` as ClientKey,
  count: share.sandboxes,
  spec: withImage(plan.spec, share),
});

/** Whether a task may leave is its own: each sandbox is asked. */
const eligibleOf = (sandboxes: number, random: Random): number => {
  let eligible = 0;
  for (let i = 0; i < sandboxes; i += 1) if (isCloudEligible(random)) eligible += 1;
  return eligible;
};
