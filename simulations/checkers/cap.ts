/** INV-CAP: what is admitted on a node never exceeds its capacity, in any dimension: summed from the log, without admission's help. */
import type { MakeChecker } from './checker.ts';

type Sums = Record<string, number>;
type Limits = Readonly<Record<string, number | null>>;

export const capChecker: MakeChecker = ({ cluster, fail }) => {
  const nodes = new Map<string, Sums>();
  /** One per spec: its sandboxes share it. */
  const needs = new WeakMap<object, Sums>();
  const add = (edge: string, need: Sums, sign: 1 | -1): Sums => {
    const sums = nodes.get(edge) ?? {};
    nodes.set(edge, sums);
    for (const dimension in need) sums[dimension] = (sums[dimension] ?? 0) + sign * (need[dimension] ?? 0);
    return sums;
  };
  return {
    stored: ({ address }, commit) => {
      if (address.kind !== 'sandbox' || !commit) return;
      for (const event of commit.events) {
        if (event.type === 'SandboxAdmitted') {
          const need = needOf(needs, (event['spec'] as { limits: Limits }).limits);
          const edge = event['edge'] as string;
          const sums = add(edge, need, 1);
          const capacity = cluster().o.capacity as unknown as Sums;
          for (const dimension in need)
            if ((sums[dimension] ?? 0) > (capacity[dimension] ?? 0))
              fail('INV-CAP', `${edge} admitted ${sums[dimension]} of ${capacity[dimension]} ${dimension} with ${address.id}`);
        } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') {
          add(address.home, needOf(needs, (commit.state as unknown as { spec: { limits: Limits } }).spec.limits), -1);
        }
      }
    },
  };
};

const needOf = (known: WeakMap<object, Sums>, limits: Limits): Sums => {
  const need = known.get(limits) ?? {
    sandboxes: 1,
    memoryMiB: limits['memoryMiB'] ?? 0,
    cpuMillis: limits['cpuMillis'] ?? 0,
    pids: limits['pids'] ?? 0,
    diskMiB: limits['diskMiB'] ?? 0,
  };
  known.set(limits, need);
  return need;
};
