/** INV-LIVE: once the faults are over, whatever was begun ends within the bound: requests, transitions, commands. */
import type { RequestState } from '#bus/request/schema.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { commitOf, entryOf } from '../ports/event-store.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

export const liveChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  /** Sandboxes that came to be; the log may have forgotten them since. */
  const born = new Set<string>();
  return {
    stored: ({ address }, commit) => {
      if (address.kind === 'sandbox' && commit?.version === 1 && isFollowed(address.id, oneIn)) born.add(address.id);
    },
    atEnd: () => {
      const { nodes, ground } = cluster();
      const dead = new Set<string>(nodes.filter((node) => node.dead).map(({ name }) => name));
      for (const message of ground.store.actors()) {
        const stored = commitOf(entryOf(message));
        if (!stored) continue;
        if (stored.address.kind === 'sandbox') {
          const { id, edge, status, transitionDeadlineAt } = stored.commit.state as unknown as SandboxState;
          if (status !== 'stopped' && status !== 'failed' && !dead.has(edge))
            fail('INV-LIVE', `${id} is still ${status} (deadline ${transitionDeadlineAt}) long after everything was asked to end`);
        } else if (stored.address.kind === 'request') {
          const { id, items } = stored.commit.state as unknown as RequestState;
          for (const [index, { sandboxId, edge, error }] of items.entries()) {
            if (error || !sandboxId || !edge || dead.has(edge) || !isFollowed(sandboxId, oneIn)) continue;
            if (!born.has(sandboxId)) fail('INV-LIVE', `request ${id}: item ${index} was assigned to ${edge} and nothing came of it`);
          }
        }
      }
    },
  };
};
