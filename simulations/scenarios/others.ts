/** Large scenarios beside the full unit: a day, jobs preempted, nodes that die, and an upgrade of the records in the middle of it. */
import type { ActorDefinition } from '#actors/kernel/definition.ts';
import type { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import { dayShape, lifeMs, sandboxesPerJob } from '../workload/distributions.ts';
import type { Figures } from './figures.ts';
import { type Job, type LargeOptions, type LargeResult, large, WARM_UP_MS } from './large.ts';
import { PRODUCTION } from '../hosts/parts.ts';
import type { Run } from './run.ts';

export type ScenarioOptions = { readonly seed: number; readonly scale: number; readonly trace?: Trace; readonly say?: (run: Run, figures: Figures) => void };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UNIT = { nodes: 160, sandboxesPerDay: 3_000_000, live: 380_000 } as const;

/** Jobs at a rate that follows the hours, sized and living as in the paper, until so many sandboxes were asked for. */
function* jobsOfDay(random: Random, sandboxes: number): Generator<Job> {
  const perMs = sandboxes / DAY_MS;
  const meanShape = Array.from({ length: 24 }, (_, hour) => dayShape(hour * HOUR_MS)).reduce((sum, n) => sum + n, 0) / 24;
  let atMs = WARM_UP_MS;
  for (let asked = 0; asked < sandboxes; ) {
    const size = Math.min(sandboxesPerJob(random), sandboxes - asked);
    const lives = random.child(`job ${asked}`);
    yield { atMs: Math.round(atMs), sandboxes: size, useMs: () => lifeMs(lives) };
    asked += size;
    atMs += (size / perMs) * (meanShape / dayShape(atMs));
  }
}

/** Three million sandboxes over a day (@paper §2.4), a hundredth of the nodes restarted each hour as infrastructure is renewed. */
export const day = (o: ScenarioOptions): LargeResult =>
  large({
    ...sized(o),
    projects: 64,
    tickMs: 60_000,
    safetyMs: DAY_MS + HOUR_MS,
    livenessMs: 4 * HOUR_MS,
    jobs: (random) => jobsOfDay(random, Math.round(UNIT.sandboxesPerDay * o.scale)),
    during: ({ cluster }, _, random) => {
      for (let hour = 1; hour < 24; hour += 1)
        for (let n = 0; n < Math.ceil(cluster.nodes.length / 100); n += 1)
          cluster.time.after((hour * HOUR_MS + random.between(0, HOUR_MS)) * 1_000, 'renewal', () => cluster.crash(`edge-${random.pick(cluster.nodes).name}`));
    },
  });

/**
 * A steady state at half of the unit, then a fifth of all jobs lose their owner within a second, without a word: leases run out, and each
 * job's own policy pauses, keeps or stops its sandboxes. A minute later new owners claim the jobs again. @paper §6.3
 */
export const preempt = (o: ScenarioOptions): LargeResult =>
  large({
    ...steady(o, 0.5),
    owned: (random) => ({
      leaseMs: random.between(5_000, 20_000),
      graceMs: random.pick([0, 5_000]),
      onOwnerLost: random.pick(['pause', 'pause', 'keep', 'stop'] as const),
    }),
    cluster: { jobs: 2 },
    during: ({ cluster }, _, random, trainers) => {
      cluster.time.after(STEADY_MS * 1_000, 'preemption', () => {
        for (const trainer of trainers) {
          if (!random.chance(200)) continue;
          cluster.time.after(random.between(0, 1_000) * 1_000, 'preempted', () => trainer.preempt());
          cluster.time.after((60_000 + random.between(0, 1_000)) * 1_000, 'back', () => trainer.comeBack());
        }
      });
    },
  });

/** A tenth of all nodes lose their power at once and never come back; their sandboxes are lost by one commit each node. */
export const edgeLoss = (o: ScenarioOptions): LargeResult =>
  large({
    ...steady(o, 0.5),
    during: ({ cluster }, _, random) => {
      cluster.time.after(STEADY_MS * 1_000, 'a tenth dies', () => {
        const first = random.between(0, cluster.nodes.length - 1);
        for (let i = 0; i < Math.ceil(cluster.nodes.length / 10); i += 1) {
          const node = cluster.nodes[(first + i) % cluster.nodes.length];
          if (node) cluster.powerLoss(node, null);
        }
      });
    },
  });

/**
 * Half of the Edges run a program that writes version 1 of the sandbox's records, the other half one that writes version 2 and reads
 * both; then the old ones are restarted with the new program, one after another.
 */
export const upgrade = (o: ScenarioOptions): LargeResult => {
  const versions = { newest: 1 };
  const sandbox: typeof PRODUCTION.sandbox = {
    ...(PRODUCTION.sandbox as ActorDefinition<never, never, never, never>),
    get schema() {
      return versions.newest;
    },
    parseState: (raw: unknown, schema?: number) => {
      if ((schema ?? 1) > versions.newest) throw new Error(`an old program met version ${schema}`);
      return PRODUCTION.sandbox.parseState(raw, Math.min(schema ?? 1, PRODUCTION.sandbox.schema));
    },
  } as typeof PRODUCTION.sandbox;
  return large({
    ...steady(o, 0.25),
    parts: { sandbox },
    during: ({ cluster }) => {
      cluster.time.after(STEADY_MS * 1_000, 'upgrade', () => {
        versions.newest = 2; // readers first: from here on every program reads both
        for (const [i, node] of cluster.nodes.entries()) cluster.time.after(i * 200_000, 'new program', () => cluster.crash(`edge-${node.name}`));
      });
    },
  });
};

const STEADY_MS = 60_000;

/** Jobs of 1,000 come evenly over half a minute and stay. */
const steady = (o: ScenarioOptions, share: number): LargeOptions => {
  const sandboxes = Math.round(UNIT.live * share * o.scale);
  return {
    ...sized(o),
    projects: 40,
    tickMs: 1_000,
    safetyMs: STEADY_MS + 180_000,
    livenessMs: 900_000,
    *jobs(random: Random): Generator<Job> {
      const size = Math.min(1_000, Math.max(1, Math.ceil(sandboxes / 40)));
      for (let given = 0; given < sandboxes; given += size)
        yield {
          atMs: WARM_UP_MS + Math.round((given / sandboxes) * 30_000),
          sandboxes: Math.min(size, sandboxes - given),
          useMs: () => random.between(150_000, 600_000),
        };
    },
  };
};

const sized = (o: ScenarioOptions) => ({ ...o, nodes: Math.max(2, Math.round(UNIT.nodes * o.scale)) });
