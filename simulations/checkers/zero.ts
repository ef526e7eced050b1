/** INV-ZERO: when everything has ended nothing is held: no process, no reservation, no command in the queue. */
import type { Checker, MakeChecker } from './checker.ts';

export const zeroChecker: MakeChecker = ({ cluster, fail }): Checker => ({
  atEnd: () => {
    const { nodes, ground } = cluster();
    for (const { name, machine, edge, dead } of nodes) {
      if (dead) continue;
      if (machine.live > 0) fail('INV-ZERO', `${machine.live} processes are left on ${name}: ${machine.present().slice(0, 3).join(', ')}`);
      const used = edge.admission.used();
      for (const [dimension, amount] of Object.entries(used)) if (amount !== 0) fail('INV-ZERO', `${name} still holds ${amount} ${dimension}`);
    }
    const dead = nodes.filter((node) => node.dead).map(({ name }) => ground.commands.store.sizeOf(`dsec.cmd.edge.${name}.*`));
    const left = ground.commands.store.size - dead.reduce((sum, n) => sum + n, 0);
    if (left > 0) fail('INV-ZERO', `${left} commands are left in the queue`);
  },
});
