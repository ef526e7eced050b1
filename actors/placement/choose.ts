/**
 * The placement policy: which node gets which sandbox. A pure function of the fleet view and a seed; one node and a thousand
 * go the same way.
 *
 * Filter (backend, room), sample a few, fill the least loaded of them evenly. A group shares few nodes in blocks of
 * neighbouring items, because each node of a chunk costs a message. Descriptors are the node's own business: it knows what
 * a sandbox of its backend holds open, and refuses.
 * @paper §3.2 §7
 */
import type { Capacity } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { FleetNode, FleetView } from './fleet.ts';
import { PLACEMENT_POLICY } from './limits.ts';
import { randomFrom, sample } from './random.ts';

export type ChooseInput = {
  readonly spec: SandboxSpec;
  readonly count: number;
  readonly fleet: FleetView;
  /** 32 bits; the same seed chooses the same. */
  readonly seed: number;
  /** Nodes that have refused already. */
  readonly exclude: readonly EdgeName[];
};

type Need = { readonly sandboxes: number; readonly memoryMiB: number; readonly cpuMillis: number; readonly pids: number };
/** A node being filled: `room` sandboxes still fit, `taken` were given to it in this choice. */
type Bin = { readonly node: FleetNode; readonly room: number; taken: number };

/** One node per item, in the order of the items; null where no node has room. */
export const choose = ({ spec, count, fleet, seed, exclude }: ChooseInput): (EdgeName | null)[] => {
  const need: Need = { sandboxes: 1, memoryMiB: spec.limits.memoryMiB, cpuMillis: spec.limits.cpuMillis, pids: spec.limits.pids };
  const excluded = new Set(exclude);
  const bins = fleet
    .filter((node) => node.backends.includes(spec.backend) && !excluded.has(node.edge))
    .map((node): Bin => ({ node, room: roomFor(node, need), taken: 0 }))
    .filter((bin) => bin.room > 0);

  const chosen = choosePlaces(bins, count, need, seed);
  fill(chosen, count, need);
  const placed = chosen.flatMap((bin) => Array.from({ length: bin.taken }, () => bin.node.edge));
  return Array.from({ length: count }, (_, index) => placed[index] ?? null);
};

/** The least loaded of a sample, as many as the group should share; more only while they do not hold it. */
const choosePlaces = (bins: readonly Bin[], count: number, need: Need, seed: number): Bin[] => {
  const { nodesPerChunkMax, itemsPerNodeMin, samplesPerNode } = PLACEMENT_POLICY;
  const wanted = Math.min(nodesPerChunkMax, Math.ceil(count / itemsPerNodeMin));
  const sampled = sample(bins, bins.length, randomFrom(seed));
  const byLoad = (a: Bin, b: Bin) => loadWith(a.node, need, 1) - loadWith(b.node, need, 1);
  const inOrder = [...sampled.slice(0, wanted * samplesPerNode).sort(byLoad), ...sampled.slice(wanted * samplesPerNode).sort(byLoad)];
  let room = 0;
  let places = 0;
  while (places < inOrder.length && (places < wanted || room < count)) {
    room += inOrder[places]?.room ?? 0;
    places += 1;
  }
  return inOrder.slice(0, places);
};

/** Gives items one by one to whichever node would be the least loaded with it, so that the filled nodes end up level. */
const fill = (bins: readonly Bin[], count: number, need: Need): void => {
  for (let given = 0; given < count; given += 1) {
    let best: Bin | undefined;
    let bestLoad = Number.POSITIVE_INFINITY;
    for (const bin of bins) {
      if (bin.taken >= bin.room) continue;
      const load = loadWith(bin.node, need, bin.taken + 1);
      if (load < bestLoad) {
        best = bin;
        bestLoad = load;
      }
    }
    if (!best) return;
    best.taken += 1;
  }
};

const DIMENSIONS = ['sandboxes', 'memoryMiB', 'cpuMillis', 'pids'] as const satisfies readonly (keyof Need & keyof Capacity)[];

const roomFor = ({ capacity, used }: FleetNode, need: Need): number =>
  Math.max(0, Math.min(...DIMENSIONS.map((d) => Math.floor((capacity[d] - used[d]) / need[d]))));

/** The fullest dimension decides, 0…1, with `extra` more sandboxes of this kind on the node. */
const loadWith = ({ capacity, used }: FleetNode, need: Need, extra: number): number => {
  let load = 0;
  for (const d of DIMENSIONS) load = Math.max(load, (used[d] + need[d] * extra) / capacity[d]);
  return load;
};
