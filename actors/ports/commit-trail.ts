/** Commits of one project in the order of a shard's log: what an audit reads. No decision rests on it. */
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { StoredCommit } from './event-log.ts';

/** `storedAtMs`: by the bus's clock, which is one for all who commit. */
export type TrailCommit = StoredCommit & { readonly storedAtMs: number };
/** Where reading begins: at a place in the shard, or at a time. */
export type TrailStart = { readonly sequence: number } | { readonly storedAtMs: number };

export interface CommitTrail {
  /** Oldest first, at most `limit`. `more`: there were others behind the last one. Rejects with BUS_UNAVAILABLE. */
  read(range: { readonly shard: Shard; readonly project: ProjectName; readonly from: TrailStart; readonly limit: number }): Promise<{
    readonly commits: readonly TrailCommit[];
    readonly more: boolean;
  }>;
}
