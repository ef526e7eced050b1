/** INV-CAP: what is admitted on a node never exceeds its capacity, in any dimension: summed from the log, without admission's help. */
import type { MakeChecker } from './checker.ts';

type Sums = Record<string, number>;
type Admitted = { readonly edge: string; readonly need: Sums };

export const capChecker: MakeChecker = ({ cluster, fail }) => {
  const nodes = new Map<string, Sums>();
  const admitted = new Map<string, Admitted>();
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
          const { memoryMiB, cpuMillis, pids, diskMiB } = (event['spec'] as { limits: Record<string, number | null> }).limits;
          const need = { sandboxes: 1, memoryMiB: memoryMiB ?? 0, cpuMillis: cpuMillis ?? 0, pids: pids ?? 0, diskMiB: diskMiB ?? 0 };
          const edge = event['edge'] as string;
          admitted.set(address.id, { edge, need });
          const sums = add(edge, need, 1);
          const capacity = cluster().o.capacity as unknown as Sums;
          for (const dimension in need)
            if ((sums[dimension] ?? 0) > (capacity[dimension] ?? 0))
              fail('INV-CAP', `${edge} admitted ${sums[dimension]} of ${capacity[dimension]} ${dimension} with ${address.id}`);
        } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') {
          const held = admitted.get(address.id);
          admitted.delete(address.id);
          if (held) add(held.edge, held.need, -1);
        }
      }
    },
  };
};
