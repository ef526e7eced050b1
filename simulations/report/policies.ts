/**
 * Policies of placement to compare ours with, in the same place: they fill in for `choose`. Each looks at the same view; what
 * differs is how many nodes it looks at, and whether it counts what it has itself just decided (the overlay).
 * @paper §3.2 §7
 */
import type { EdgeName } from '#bus/ids.ts';
import { choose } from '#actors/placement/choose.ts';
import type { FleetNode } from '#actors/placement/fleet.ts';
import { PLACEMENT_POLICY } from '#actors/placement/limits.ts';
import { randomFrom } from '#actors/placement/random.ts';
import type { Parts } from '../hosts/parts.ts';

type Choose = Parts['choose'];
type Pick = (nodes: readonly FleetNode[], random: (bound: number) => number, turn: number) => FleetNode | undefined;

const loadOf = ({ used, capacity }: FleetNode): number =>
  Math.max(...(['sandboxes', 'memoryMiB', 'cpuMillis', 'pids'] as const).map((dimension) => used[dimension] / Math.max(1, capacity[dimension])));

/** A chunk goes in blocks to as many nodes as ours gives it to, so that the number of messages is the same. */
const inBlocks =
  (pick: Pick): Choose =>
  ({ fleet, count, seed, exclude }) => {
    const random = randomFrom(seed);
    const nodes = fleet.filter(({ edge }) => !exclude.includes(edge));
    const blocks = Math.min(PLACEMENT_POLICY.nodesPerChunkMax, count);
    const chosen: (EdgeName | null)[] = [];
    for (let block = 0; block < blocks; block += 1) {
      const size = Math.floor(count / blocks) + (block < count % blocks ? 1 : 0);
      const node = pick(nodes, random, block);
      for (let i = 0; i < size; i += 1) chosen.push(node?.edge ?? null);
    }
    return chosen;
  };

/** Of k nodes drawn at random, the least loaded as the view has it. */
const kChoice = (k: number): Choose =>
  inBlocks((nodes, random) => {
    let best: FleetNode | undefined;
    for (let i = 0; i < k && nodes.length > 0; i += 1) {
      const node = nodes[random(nodes.length)] as FleetNode;
      if (!best || loadOf(node) < loadOf(best)) best = node;
    }
    return best;
  });

/** Everybody goes where the view says it is emptiest; blocks of one chunk go to the emptiest few. */
const leastLoaded: Choose = inBlocks((nodes, _, turn) => [...nodes].sort((a, b) => loadOf(a) - loadOf(b))[turn % Math.max(1, nodes.length)]);

const roundRobin = (): Choose => {
  let next = 0;
  return inBlocks((nodes) => nodes[next++ % Math.max(1, nodes.length)]);
};

/** `k1` … `k8` are k-choice without, `k1+` … with the overlay; `random` is `k1`. */
export const policyOf = (name: string): Partial<Parts> => {
  const k = /^k([1-8])(\+?)$/.exec(name);
  if (k) return { choose: kChoice(Number(k[1])), overlay: k[2] === '+' };
  switch (name) {
    case 'ours':
      return { choose };
    case 'ours-without-overlay':
      return { choose, overlay: false };
    case 'random':
      return { choose: kChoice(1), overlay: false };
    case 'round-robin':
      return { choose: roundRobin(), overlay: false };
    case 'least-loaded':
      return { choose: leastLoaded, overlay: false };
    case 'least-loaded+':
      return { choose: leastLoaded };
    default:
      throw new Error(`there is no policy ${name}; there are ${POLICIES.join(', ')}`);
  }
};
export const POLICIES = [
  'ours',
  'ours-without-overlay',
  'random',
  'round-robin',
  'least-loaded',
  'least-loaded+',
  'k2',
  'k3',
  'k4',
  'k5',
  'k6',
  'k7',
  'k8',
  'k1+',
  'k2+',
  'k3+',
  'k4+',
  'k5+',
  'k6+',
  'k7+',
  'k8+',
] as const;
