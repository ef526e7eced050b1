/** INV-DUR: an answer leaves an actor only after its commit is in the log, and what was answered stays there. */
import { commitSubject, type ActorAddress } from '#bus/subjects.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

type Known = { readonly address: ActorAddress; stored: number; answered: number };

export const durChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  const actors = new Map<string, Known>();
  return {
    stored: ({ address }, commit) => {
      if (!isFollowed(address.id, oneIn)) return;
      if (!commit) return void actors.delete(commitSubject(address));
      const known = actors.get(commitSubject(address));
      if (known) known.stored = commit.version;
      else actors.set(commitSubject(address), { address, stored: commit.version, answered: 0 });
    },
    replied: (address, result) => {
      if (!result.ok || result.decision !== 'accepted' || !isFollowed(address.id, oneIn)) return;
      const known = actors.get(commitSubject(address));
      if (!known || known.stored < result.version)
        return fail('INV-DUR', `${address.id} answered with version ${result.version}, the log has ${known?.stored ?? 'none'}`);
      known.answered = Math.max(known.answered, result.version);
    },
    atEnd: () => {
      const { store, server } = cluster().ground;
      for (const { address, answered } of actors.values()) {
        if (answered === 0) continue;
        const entry = store.last(server.nowMs, address);
        const version = entry?.kind === 'commit' ? entry.stored.commit.version : 0;
        if (version < answered) fail('INV-DUR', `${address.id} had answered with version ${answered}, the log ends at ${version}`);
      }
    },
  };
};
