/** Large scenarios beside the full unit: a day, jobs preempted, nodes that die, and an upgrade of the records in the middle of it. */
import type { DurationMs } from '#bus/units.ts';
import type { SnapshotId } from '#bus/ids.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import { dayShape, lifeMs, phasesOf, sandboxesPerJob } from '../workload/distributions.ts';
import { capacityOf, PAPER_NODE } from './capacity.ts';
import type { Figures } from './figures.ts';
import { type Job, type LargeOptions, type LargeResult, large, WARM_UP_MS } from './large.ts';
import { type Programs, programsOf } from './upgrade.ts';
import type { Run } from './run.ts';

export type ScenarioOptions = {
  readonly seed: number;
  readonly scale: number;
  /** `day`: a fleet of a fifth, whose peaks go to the cloud. */
  readonly overflow?: boolean;
  readonly trace?: Trace;
  readonly say?: (run: Run, figures: Figures) => void;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UNIT = { nodes: 160, sandboxesPerDay: 3_000_000, live: 380_000 } as const;

/** Jobs at a rate that follows the hours, sized and living as in the paper, until so many sandboxes were asked for. */
function* jobsOfDay(random: Random, scale: number): Generator<Job> {
  const sandboxes = Math.round(UNIT.sandboxesPerDay * scale);
  const perMs = sandboxes / DAY_MS;
  const meanShape = Array.from({ length: 24 }, (_, hour) => dayShape(hour * HOUR_MS)).reduce((sum, n) => sum + n, 0) / 24;
  let atMs = WARM_UP_MS;
  for (let asked = 0; asked < sandboxes; ) {
    const size = Math.min(Math.max(1, Math.round(sandboxesPerJob(random) * scale)), sandboxes - asked);
    const lives = random.child(`job ${asked}`);
    yield { atMs: Math.round(atMs), sandboxes: size, useMs: () => lifeMs(lives) };
    asked += size;
    atMs += (size / perMs) * (meanShape / dayShape(atMs));
  }
}

/** With overflow the fleet is a fifth of the unit: it holds what is usual, and not the peaks. */
const perNode = (o: ScenarioOptions): number =>
  o.overflow ? Math.ceil((UNIT.nodes * o.scale * PAPER_NODE.sandboxes) / 5 / sized(o).nodes) : PAPER_NODE.sandboxes;

/** Three million sandboxes over a day (@paper §2.4), a hundredth of the nodes restarted each hour as infrastructure is renewed. */
export const day = (o: ScenarioOptions): LargeResult =>
  large({
    ...sized(o),
    overflow: o.overflow ?? false,
    cluster: { capacity: capacityOf({ ...PAPER_NODE, sandboxes: perNode(o) }) },
    projects: 16,
    images: true,
    tickMs: 60_000,
    safetyMs: DAY_MS + HOUR_MS,
    livenessMs: 4 * HOUR_MS,
    jobs: (random) => jobsOfDay(random, o.scale),
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

/**
 * A tenth of all nodes lose their power at once and never come back; their sandboxes are lost by one commit each node. Each sandbox was
 * saved at the end of its set-up, as who wants to fork it does. @paper §4
 */
export const edgeLoss = (o: ScenarioOptions): LargeResult =>
  large({
    ...steady(o, 0.5),
    asks: (index) => [{ afterMs: phasesOf(Random.fromSeed(index).child('phases'), 300_000).setUpMs, command: SAVE }],
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
 * A steady state written by the old program; then every node is restarted with the new one, one after another. On one of them the old
 * one is tried again: it must not start over what it cannot read.
 */
export const upgrade = (o: ScenarioOptions & { readonly programs?: Programs }): UpgradeResult => {
  const { old, now, lift } = o.programs ?? programsOf();
  const upgraded = new Set<string>();
  const begun = new Set<string>();
  const written = { old: 0, now: 0, mixed: 0 };
  const result = large({
    ...steady(o, 0.25),
    // Something is written of each while it runs: before the upgrade of some, after it of others.
    asks: (index) => [{ afterMs: 20_000 + ((index * 37) % 100) * 1_000, command: { type: 'ExtendLives', totalMs: 80_000_000 as DurationMs } }],
    cluster: { partsOfNode: (edge) => (upgraded.has(edge) ? now : old), lift },
    observers: [
      {
        stored: (_, commit) => {
          if (commit?.kind !== 'sandbox') return;
          written[commit.schema === 1 ? 'old' : 'now'] += 1;
          if (commit.schema === 1) begun.add(commit.actorId);
          else if (begun.delete(commit.actorId)) written.mixed += 1;
        },
      },
    ],
    during: ({ cluster }) => {
      cluster.time.after(STEADY_MS * 1_000, 'upgrade', () => {
        for (const [i, { name }] of cluster.nodes.entries())
          cluster.time.after(i * 200_000, 'new program', () => {
            upgraded.add(name);
            cluster.crash(`edge-${name}`);
          });
        const first = cluster.nodes[0]?.name;
        if (!first) return;
        cluster.time.after(130_000_000, 'old program again', () => {
          upgraded.delete(first);
          cluster.crash(`edge-${first}`);
        });
        cluster.time.after(150_000_000, 'new program', () => upgraded.add(first)); // its supervisor has started it ever again
      });
    },
  });
  return { ...result, written };
};
/** Commits of sandboxes by the version that they are written in; `mixed`: sandboxes with both. */
export type UpgradeResult = LargeResult & { readonly written: { readonly old: number; readonly now: number; readonly mixed: number } };

const SAVE: SandboxBusCommand = { type: 'SnapshotSandbox', snapshotId: 'set-up' as SnapshotId, scrub: [], purpose: 'keep' };
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
