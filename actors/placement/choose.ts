/**
 * The placement policy: which node gets which sandbox. A pure function of the fleet view and a seed; one node and a thousand
 * go the same way.
 *
 * Filter (backend, required labels, whom the node may be shared with, room), sample a few, fill the least loaded of them evenly.
 * Layers that lie ready make a node count as less loaded, failures of late as more. Nodes that fail again and again, and, for who
 * prefers to be apart, those of other projects, are taken when no others have room. A group shares few nodes in blocks of
 * neighbouring items, because each node of a chunk costs a message. Descriptors are the node's own business: it knows what
 * a sandbox of its backend holds open, and refuses.
 * @paper §3.2 §7
 */
import type { Capacity } from '#bus/edge/schema.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { FleetNode, FleetView } from './fleet.ts';
import { isUnwelcome, mayShare } from './isolation.ts';
import { PLACEMENT_POLICY } from './limits.ts';
import { randomFrom, shuffled } from './random.ts';

export type ChooseInput = {
  readonly project: ProjectName;
  readonly spec: SandboxSpec;
  readonly count: number;
  readonly fleet: FleetView;
  /** How many placements choose from such a view just now, this one among them; left out: it is the only one. */
  readonly placements?: number;
  /** 32 bits; the same seed chooses the same. */
  readonly seed: number;
  /** Nodes that have refused already. */
  readonly exclude: readonly EdgeName[];
};

type Need = { readonly sandboxes: number; readonly memoryMiB: number; readonly cpuMillis: number; readonly pids: number; readonly diskMiB: number };
/** A node being filled: `room` sandboxes fit, `taken` were given to it in this choice, `load` is what one more would make it. */
type Bin = { readonly node: FleetNode; readonly room: number; readonly bias: number; readonly isReluctant: boolean; taken: number; load: number };

/**
 * One node per item, in the order of the items; null where no node has room.
 *
 * Decisions that no beat shows yet are counted first. Where they leave no room, the beats alone decide: what was decided a
 * moment ago may already have ended, and the Edge has the final say.
 */
export const choose = (input: ChooseInput): (EdgeName | null)[] => {
  const careful = chooseWithin(input);
  const missing = careful.filter((edge) => edge === null).length;
  if (missing === 0) return careful;
  const rest = chooseWithin({ ...input, count: missing, fleet: input.fleet.map((node) => asSeen(node, careful, needOf(input.spec))) });
  return careful.map((edge) => edge ?? rest.shift() ?? null);
};

/** The node as its beat shows it, with what this choice has given to it. */
const asSeen = (node: FleetNode, chosen: readonly (EdgeName | null)[], need: Need): FleetNode => {
  const taken = chosen.filter((edge) => edge === node.edge).length;
  const used: Record<string, number> = { ...(node.seen ?? node.used) };
  for (const d of DIMENSIONS) used[d] = (used[d] ?? 0) + need[d] * taken;
  return { ...node, used: used as unknown as Capacity };
};

const needOf = ({ limits: { memoryMiB, cpuMillis, pids, diskMiB } }: SandboxSpec): Need => ({
  sandboxes: 1,
  memoryMiB,
  cpuMillis,
  pids,
  diskMiB: diskMiB ?? 0,
});

const chooseWithin = (input: ChooseInput): (EdgeName | null)[] => {
  const { count } = input;
  const need = needOf(input.spec);
  const bins = choosePlaces(input, need);
  fill(bins, count, need, othersOf(input));
  const placed = bins.flatMap((bin) => Array.from({ length: bin.taken }, () => bin.node.edge));
  return Array.from({ length: count }, (_, index) => placed[index] ?? null);
};

/** The least loaded of a sample, as many as the group should share; more of the fleet only while they do not hold it. */
const choosePlaces = (input: ChooseInput, need: Need): Bin[] => {
  const { nodesPerChunkMax, nodesPerChunkMin, fleetPerChunkNode, itemsPerNodeMin, samplesPerNode } = PLACEMENT_POLICY;
  const share = Math.max(nodesPerChunkMin, Math.ceil(input.fleet.length / fleetPerChunkNode));
  const wanted = Math.min(nodesPerChunkMax, share, Math.ceil(input.count / itemsPerNodeMin));
  const candidates = inOrder(candidatesOf(input, need));
  const sampled = take(candidates, wanted * samplesPerNode).sort(byPreference);
  const welcome = sampled.filter((bin) => !bin.isReluctant).length;
  const places = sampled.splice(0, Math.min(wanted, welcome || sampled.length));
  let room = places.reduce((n, bin) => n + bin.room, 0);
  while (room < input.count) {
    const more = sampled.shift() ?? take(candidates, 1)[0];
    if (!more) break;
    places.push(more);
    room += more.room;
  }
  return places;
};

const byPreference = (a: Bin, b: Bin): number => Number(a.isReluctant) - Number(b.isReluctant) || a.load - b.load;

/** Nodes that can take at least one, in random order. Lazy: a single create looks at a few nodes of a large fleet. */
function* candidatesOf(input: ChooseInput, need: Need): Generator<Bin, void> {
  const { project, spec, fleet, seed, exclude } = input;
  const others = othersOf(input);
  const required = Object.entries(spec.require);
  for (const node of shuffled(fleet, randomFrom(seed))) {
    if (!node.backends.includes(spec.backend) || exclude.includes(node.edge)) continue;
    if (!mayShare(project, spec.isolation, node) || required.some(([name, value]) => node.labels[name] !== value)) continue;
    const room = roomFor(node, need);
    const isReluctant = node.failures >= PLACEMENT_POLICY.avoidAbove || isUnwelcome(project, spec.isolation, node);
    const bias = biasOf(node, spec);
    if (room > 0) yield { node, room, taken: 0, load: loadWith(node, need, 1, others) + bias, bias, isReluctant };
  }
}

/** What makes a node count as more or less loaded than it is. */
const biasOf = ({ failures, layers }: FleetNode, spec: SandboxSpec): number => {
  const ready = spec.layers.reduce((n, layer) => n + (layers.has(layer) ? 1 : 0), 0);
  return failures * PLACEMENT_POLICY.failurePenalty - (ready / spec.layers.length) * PLACEMENT_POLICY.localityBonus;
};

/** Those that are taken reluctantly come when the others are through. */
function* inOrder(bins: Iterable<Bin>): Generator<Bin, void> {
  const later: Bin[] = [];
  for (const bin of bins) {
    if (bin.isReluctant) later.push(bin);
    else yield bin;
  }
  yield* later;
}

/** `for…of` would close the generator, and more may be taken from it later. */
const take = (bins: Generator<Bin, void>, count: number): Bin[] => {
  const taken: Bin[] = [];
  while (taken.length < count) {
    const next = bins.next();
    if (next.done) break;
    taken.push(next.value);
  }
  return taken;
};

/** Gives items one by one to whichever node would be the least loaded with it, so that the filled nodes end up level. */
const fill = (bins: readonly Bin[], count: number, need: Need, others: number): void => {
  for (let given = 0; given < count; given += 1) {
    let best: Bin | undefined;
    for (const bin of bins) if (bin.taken < bin.room && (!best || byPreference(bin, best) < 0)) best = bin;
    if (!best) return;
    best.taken += 1;
    best.load = loadWith(best.node, need, best.taken + 1, others) + best.bias;
  }
};

const DIMENSIONS = ['sandboxes', 'memoryMiB', 'cpuMillis', 'pids', 'diskMiB'] as const satisfies readonly (keyof Need & keyof Capacity)[];

const roomFor = ({ capacity, used }: FleetNode, need: Need): number => {
  let room = Number.MAX_SAFE_INTEGER;
  for (const d of DIMENSIONS) if (need[d] > 0) room = Math.min(room, Math.floor((capacity[d] - used[d]) / need[d]));
  return Math.max(0, room);
};

/**
 * The fullest dimension decides, 0…1, with `extra` more sandboxes of this kind on the node. What was decided here and no beat shows
 * yet counts once more for each other placement: they see the same beats, and make up for the same differences. Otherwise all of
 * them together make up for each difference as many times as they are (`simulations/REPORT.md`).
 */
const loadWith = ({ capacity, used, seen = used }: FleetNode, need: Need, extra: number, others: number): number => {
  let load = 0;
  for (const d of DIMENSIONS) {
    if (need[d] === 0) continue;
    const byOthers = others * (used[d] - seen[d] + need[d] * (extra - 1));
    load = Math.max(load, (used[d] + need[d] * extra + byOthers) / capacity[d]);
  }
  return load;
};
const othersOf = ({ placements = 1 }: ChooseInput): number => placements - 1;
