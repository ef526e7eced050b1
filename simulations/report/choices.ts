/**
 * The choices of a burst alone: production's fleet view and a policy, with beats of a certain age, but no bus, actors or Edges. A
 * burst at the unit's size takes milliseconds instead of seconds of processor time, so a whole grid of policies, ages and seeds can
 * be looked at; what it leaves out (refusals, repetitions, queues) `--compare` has.
 * @paper §7
 */
import { Beat, type Capacity } from '#bus/edge/schema.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { TimestampMs } from '#bus/units.ts';
import { Fleet } from '#actors/placement/fleet.ts';
import { type Parts, PRODUCTION } from '../hosts/parts.ts';
import { Random } from '../kernel/random.ts';
import { capacityOf, PAPER_NODE } from '../scenarios/capacity.ts';
import { loadOf } from '../scenarios/figures.ts';
import { specOf } from '../workload/spec.ts';

export type ChoicesOptions = {
  readonly seed: number;
  readonly nodes: number;
  readonly sandboxes: number;
  readonly perRequest: number;
  readonly jobs: number;
  readonly placements: number;
  /** How long after it was taken a beat is heard. */
  readonly viewAgeMs: number;
  /** Requests come evenly at random over so long. */
  readonly withinMs: number;
  /** Already there, on the first half of the nodes alone. */
  readonly before: number;
  readonly parts?: Partial<Parts>;
};
export const CHOICES: ChoicesOptions = {
  seed: 1,
  nodes: 160,
  sandboxes: 32_000,
  perRequest: 256,
  jobs: 1,
  placements: 4,
  viewAgeMs: 1_000,
  withinMs: 900,
  before: 0,
};

const PROJECT = 'acme' as ProjectName;
/** From the choice to the admission by the Edge. */
const ADMIT_MS = 100;
const BEAT_MS = 1_000;
const AMOUNTS = ['memoryMiB', 'cpuMillis', 'pids', 'diskMiB'] as const;

type NodeModel = { readonly edge: EdgeName; used: Record<keyof Capacity, number>; beats: number; admittedThrough: number };
type Happening = { readonly atMs: number; readonly happen: () => void };

/** Load of the fullest node ÷ mean load, once all of them are admitted. */
export const choicesOf = (o: ChoicesOptions): number => {
  const random = Random.fromSeed(o.seed).child('choices');
  const capacity = capacityOf(PAPER_NODE);
  const { choose, overlay } = { ...PRODUCTION, ...o.parts };
  const nodes = Array.from({ length: o.nodes }, (_, i) => nodeOf(i, Math.floor((2 * o.before) / o.nodes), i < o.nodes / 2, capacity));
  const byName = new Map(nodes.map((node) => [node.edge, node]));
  const fleets = Array.from({ length: o.placements }, () => new Fleet());
  const agenda: Happening[] = [];
  const at = (atMs: number, happen: () => void) => void agenda.push({ atMs, happen });

  const beat = (node: NodeModel, takenMs: number) => {
    let taken: Beat | undefined;
    at(takenMs, () => {
      taken = beatOf(node, capacity, takenMs);
    });
    for (const fleet of fleets) at(takenMs + o.viewAgeMs, () => taken && fleet.observe(taken, (takenMs + o.viewAgeMs) as TimestampMs));
  };
  for (const node of nodes) for (let takenMs = random.between(0, BEAT_MS - 1); takenMs < startMs(o) + o.withinMs; takenMs += BEAT_MS) beat(node, takenMs);

  let sequence = 0;
  for (const { spec, count } of requestsOf(o, random.child('requests'))) {
    const atMs = startMs(o) + random.between(0, o.withinMs);
    const fleet = random.pick(fleets);
    const seed = random.next();
    let blocks = new Map<EdgeName, { count: number; sequence: number }>();
    at(atMs, () => {
      const now = atMs as TimestampMs;
      const chosen = choose({ project: PROJECT, spec, count, fleet: fleet.view(now), placements: o.placements, seed, exclude: [] });
      blocks = new Map();
      for (const edge of chosen) if (edge) blocks.set(edge, { count: (blocks.get(edge)?.count ?? 0) + 1, sequence: 0 });
      for (const [edge, block] of blocks) {
        sequence += 1;
        block.sequence = sequence;
        if (overlay) fleet.noteAssigned(edge, block.count, spec, PROJECT, now).forwarded(sequence);
      }
    });
    at(atMs + ADMIT_MS, () => {
      for (const [edge, block] of blocks) admit(byName.get(edge), block, spec);
    });
  }
  for (const { happen } of agenda.sort((a, b) => a.atMs - b.atMs)) happen();
  const loads = nodes.map(({ used }) => loadOf(used as Capacity, capacity));
  return (Math.max(...loads) * loads.length) / loads.reduce((sum, load) => sum + load, 0);
};

/** Every placement has heard every node by then. */
const startMs = ({ viewAgeMs }: ChoicesOptions): number => viewAgeMs + 2 * BEAT_MS;

function* requestsOf({ sandboxes, jobs, perRequest }: ChoicesOptions, random: Random): Generator<{ readonly spec: SandboxSpec; readonly count: number }> {
  for (let job = 0; job < jobs; job += 1) {
    const spec = specOf({ memoryMiB: random.pick([1_024, 2_048, 4_096]), cpuMillis: random.pick([1_000, 2_000, 4_000]), totalMs: 86_400_000, idleMs: null });
    const share = Math.floor(sandboxes / jobs) + (job < sandboxes % jobs ? 1 : 0);
    for (let given = 0; given < share; given += perRequest) yield { spec, count: Math.min(perRequest, share - given) };
  }
}

const nodeOf = (i: number, before: number, isLoaded: boolean, capacity: Capacity): NodeModel => {
  const used = Object.fromEntries(Object.keys(capacity).map((dimension) => [dimension, 0])) as NodeModel['used'];
  const node = { edge: `n${i}` as EdgeName, used, beats: 0, admittedThrough: 0 };
  if (isLoaded) admit(node, { count: before, sequence: 0 }, specOf({ memoryMiB: 2_048, cpuMillis: 2_000, totalMs: 86_400_000, idleMs: null }));
  return node;
};

const admit = (node: NodeModel | undefined, { count, sequence }: { readonly count: number; readonly sequence: number }, { limits }: SandboxSpec): void => {
  if (!node) return;
  node.used.sandboxes += count;
  for (const dimension of AMOUNTS) node.used[dimension] += count * (limits[dimension] ?? 0);
  node.admittedThrough = Math.max(node.admittedThrough, sequence);
};

const beatOf = (node: NodeModel, capacity: Capacity, at: number): Beat => {
  node.beats += 1;
  return Beat.parse({
    v: 1,
    edge: node.edge,
    generation: 1,
    at,
    sequence: node.beats,
    backends: ['container', 'microvm'],
    capacity,
    used: { ...node.used },
    accepting: true,
    running: { [PROJECT]: node.used.sandboxes },
    admittedThrough: node.admittedThrough,
  });
};
