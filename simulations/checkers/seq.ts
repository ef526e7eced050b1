/** INV-SEQ: commits of an actor are numbered 1, 2, 3, … without gaps, and the stream's sequences only rise. */
import { isFollowed, type MakeChecker } from './checker.ts';

export const seqChecker: MakeChecker = ({ oneIn, fail }) => {
  const versions = new Map<string, number>();
  const sequences = new Map<string, number>();
  return {
    stored: ({ address, sequence }, commit) => {
      const before = sequences.get(address.shard) ?? 0;
      if (sequence <= before) fail('INV-SEQ', `sequence ${sequence} of shard ${address.shard} follows ${before}`);
      sequences.set(address.shard, sequence);
      if (!isFollowed(address.id, oneIn)) return;
      if (!commit) return void versions.delete(address.id);
      const expected = (versions.get(address.id) ?? 0) + 1;
      if (commit.version !== expected) fail('INV-SEQ', `${address.kind} ${address.id}: version ${commit.version} where ${expected} was due`);
      versions.set(address.id, commit.version);
    },
  };
};
