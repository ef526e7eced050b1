/** INV-SCHEMA: the version in which an actor is written never falls: whoever wrote an older one over a newer one had not understood what it read. */
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

export const schemaChecker: MakeChecker = ({ oneIn, fail }): Checker => {
  const versions = new Map<string, number>();
  return {
    stored: ({ address }, commit) => {
      if (address.kind !== 'sandbox' || !isFollowed(address.id, oneIn)) return;
      if (!commit) return void versions.delete(address.id);
      const before = versions.get(address.id) ?? 0;
      if (commit.schema < before)
        fail('INV-SCHEMA', `${address.id} version ${commit.version} is written in version ${commit.schema} of its records after ${before}`);
      if (commit.schema !== before) versions.set(address.id, commit.schema);
    },
  };
};
