/** INV-IDEM: a repeated command adds nothing: one commit per command and actor, one sandbox per item and attempt of a request. */
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

export const idemChecker: MakeChecker = ({ oneIn, fail }): Checker => {
  const commands = new Map<string, Set<string>>();
  const items = new Map<string, string>();
  return {
    stored: ({ address }, commit) => {
      if (!isFollowed(address.id, oneIn)) return;
      if (!commit) return void commands.delete(address.id);
      const known = commands.get(address.id) ?? new Set();
      commands.set(address.id, known);
      if (known.has(commit.commandId)) fail('INV-IDEM', `${address.id}: command ${commit.commandId} was obeyed a second time`);
      known.add(commit.commandId);
      for (const event of commit.events) {
        if (event.type !== 'SandboxAdmitted') continue;
        const item = `${event['requestId']}/${event['index']}/${event['attempt']}`;
        if (items.has(item)) fail('INV-IDEM', `item ${item} became ${address.id} and ${items.get(item)}`);
        items.set(item, address.id);
      }
    },
  };
};
