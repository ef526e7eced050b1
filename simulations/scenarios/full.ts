/**
 * The paper's whole unit: 160 nodes, 380,000 sandboxes live at once, asked for at 5,000 a second, while Edges and services are
 * killed, the stream loses its leader, answers are lost and nodes lose their power. Then everything ends. @paper §2.4
 */
import type { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import type { Figures } from './figures.ts';
import { type Job, type LargeOptions, type LargeResult, large, WARM_UP_MS } from './large.ts';
import type { Run } from './run.ts';

export type FullOptions = {
  readonly seed: number;
  readonly nodes: number;
  readonly sandboxes: number;
  readonly trace?: Trace;
  readonly observers?: LargeOptions['observers'];
  readonly say?: (run: Run, figures: Figures) => void;
};
export const FULL: FullOptions = { seed: 1, nodes: 160, sandboxes: 380_000 };

const PER_SECOND = 5_000;
const JOB = 2_000;
/** Everybody runs at once for so long. */
const HOLD_MS = 20_000;

export const full = (o: FullOptions): LargeResult => {
  const rampMs = Math.ceil((o.sandboxes / PER_SECOND) * 1_000);
  const safetyMs = WARM_UP_MS + rampMs + HOLD_MS;
  return large({
    ...o,
    projects: 16,
    tickMs: 1_000,
    safetyMs,
    livenessMs: 900_000,
    *jobs(): Generator<Job> {
      for (let given = 0; given < o.sandboxes; given += JOB)
        yield {
          atMs: WARM_UP_MS + Math.round((given / PER_SECOND) * 1_000),
          sandboxes: Math.min(JOB, o.sandboxes - given),
          useMs: () => Number.POSITIVE_INFINITY,
        };
    },
    during: (run, _, random) => faults(run, random, safetyMs),
    calm: ({ cluster: { ground } }) => {
      ground.server.lostAnswerPerMille = 0;
    },
  });
};

/** Each a few times: what a unit of this size sees in a bad month, within two minutes. */
const faults = (run: Run, random: Random, untilMs: number): void => {
  const { cluster } = run;
  cluster.ground.server.lostAnswerPerMille = 1;
  const at = (happen: () => void) => cluster.time.after(random.between(0, untilMs - run.nowMs - 5_000) * 1_000, 'fault', happen);
  for (let i = 0; i < 12; i += 1) at(() => cluster.crash(`edge-${random.pick(cluster.nodes).name}`));
  for (let i = 0; i < 4; i += 1) at(() => cluster.crash(`placement-${random.between(0, 3)}`));
  for (let i = 0; i < 4; i += 1) at(() => cluster.crash(`apiserver-${random.between(0, 3)}`));
  for (let i = 0; i < 2; i += 1) at(() => cluster.crash(`watcher-${random.between(0, 1)}`));
  for (let i = 0; i < 2; i += 1) at(() => cluster.busOutage(random.between(1_000, 4_000), 'leaderless'));
  for (let i = 0; i < 2; i += 1)
    at(() => {
      const node = random.pick(cluster.nodes);
      if (!node.dead && node.process.alive) cluster.powerLoss(node, 30_000);
    });
};
