/**
 * INV-OWN: at most one live process per sandbox, launched under the newest epoch of its node; one Edge per generation; and an
 * Edge that lives while it is declared lost has fenced itself before.
 */
import type { EdgeEvent } from '#bus/edge/schema.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

export const ownChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  const homes = new Map<string, string>();
  const generations = new Map<string, number>();
  const lost = (edge: string, generation: number): void => {
    const node = cluster().nodes.find(({ name }) => name === edge);
    if (!node?.process.alive || node.edge.lease.generation !== generation) return;
    if (!node.edge.lease.fenced) fail('INV-OWN', `${edge} was declared lost in generation ${generation} while it held itself for the owner`);
    const awake = node.machine.awake();
    if (awake !== undefined) fail('INV-OWN', `${awake} ran on ${edge} when its generation ${generation} was declared lost`);
  };
  return {
    born: (machine, { id }, epoch, obeyed) => {
      if (!isFollowed(id, oneIn)) return;
      const home = homes.get(id);
      if (home !== undefined) fail('INV-OWN', `${id} was launched on ${machine.name} while a process of it lives on ${home}`);
      if (epoch !== obeyed) fail('INV-OWN', `${id} was launched under epoch ${epoch}, the node obeyed ${obeyed}`);
      homes.set(id, machine.name);
    },
    gone: (_, { id }) => void homes.delete(id),
    stored: ({ address }, commit) => {
      if (address.kind !== 'edge' || !commit) return;
      for (const event of commit.events as unknown as EdgeEvent[]) {
        if (event.type === 'EdgeLost') lost(address.id, event.generation);
        if (event.type !== 'EdgeRegistered') continue;
        const before = generations.get(address.id) ?? 0;
        if (event.generation <= before) fail('INV-OWN', `${address.id}: generation ${event.generation} was given after ${before}`);
        generations.set(address.id, event.generation);
      }
    },
  };
};
