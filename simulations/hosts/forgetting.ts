/** Forgets an Edge's ended sandboxes now and then, one after another, as `roles/forgetting.ts` does; when each may go is decided by `actors/sandbox/retention.ts`. */
import type { EdgeName, Shard } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { sandboxForgettableAt } from '#actors/sandbox/retention.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

const RETENTION = { deletedMs: HOST_LIMITS.logRetentionMs, endedMs: HOST_LIMITS.auditRetentionMs };

export const startForgetting = (process: Process, edge: EdgeName, shards: readonly Shard[]): void => {
  const sweep = () => sweepShards(process, edge, shards);
  process.after(HOST_LIMITS.firstSweepMs, 'first sweep', sweep);
  process.every(HOST_LIMITS.sweepMs, 'sweep', sweep);
};

const sweepShards = (process: Process, home: EdgeName, [shard, ...rest]: readonly Shard[]): void => {
  if (shard === undefined || !process.alive) return;
  process.log.lastOfEach({ shard, kind: 'sandbox', home }, (answer) => {
    const now = process.clock.now();
    const due = answer.ok ? answer.value.filter(({ commit }) => mayGo(commit.state as unknown as SandboxState, now)) : [];
    forgetEach(process, due, 0, () => sweepShards(process, home, rest));
  });
};

const mayGo = (state: SandboxState, now: number): boolean => {
  const at = sandboxForgettableAt(state, RETENTION);
  return at !== null && at <= now;
};

/** A commit that came meanwhile wins: the tombstone expects what was read. */
const forgetEach = (process: Process, due: readonly StoredCommit[], at: number, done: () => void): void => {
  const stored = due[at];
  if (!stored || !process.alive) return done();
  process.log.forget(stored.address, stored.sequence, KEY_LIMITS.tombstoneTtlMs, () => forgetEach(process, due, at + 1, done));
};
