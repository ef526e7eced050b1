/**
 * The log of actors, as decisions and their host see it. Adapters: JetStream, memory, the simulation; one contract suite
 * (`test/contract/event-log.contract.ts`) runs against all of them.
 */
import type { Commit } from '#bus/envelope.ts';
import type { WireError } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';

/** A commit where it lies: `sequence` is its place in the shard's stream (1, 2, 3, …, gaps possible). */
export type StoredCommit = { readonly address: ActorAddress; readonly sequence: number; readonly commit: Commit };

export type AppendRequest = {
  readonly address: ActorAddress;
  readonly commit: Commit;
  /** Stream sequence of the actor's newest commit; 0 when it has none. */
  readonly expectedSequence: number;
  /** Same for every repetition of this append; starts with the project. */
  readonly messageId: string;
};

/**
 * `applied`: durable at `sequence` (also when an earlier repetition had been stored).
 * `conflict`: another writer's commit is the newest; reload and decide again.
 * `rejected`: the log will never take it (too large, malformed). `unknown`: it may be stored or not; repeat the same request.
 */
export type AppendOutcome =
  | { readonly outcome: 'applied'; readonly sequence: number }
  | { readonly outcome: 'not_applied'; readonly reason: 'conflict'; readonly error: WireError }
  | { readonly outcome: 'not_applied'; readonly reason: 'rejected'; readonly error: WireError }
  | { readonly outcome: 'unknown'; readonly error: WireError };

export type TailHandler = (stored: StoredCommit) => void | Promise<void>;
/** Told of an actor whose history was replaced by a tombstone at `sequence`. */
export type ForgottenHandler = (forgotten: { readonly address: ActorAddress; readonly sequence: number }) => void | Promise<void>;
export interface Tail {
  /** Ends the delivery; resolves when the handler runs no more. */
  close(): Promise<void>;
}

export interface EventLog {
  append(request: AppendRequest): Promise<AppendOutcome>;
  /** Newest commit of one actor; null when it has none or was forgotten. Rejects with BUS_UNAVAILABLE when unknown. */
  last(address: ActorAddress): Promise<StoredCommit | null>;
  /** Newest commit of every actor that matches, in stream order; forgotten ones are left out. */
  lastOfEach(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<StoredCommit[]>;
  /** Who matches, in no order; forgotten ones may be among them. Costs no reading of commits. */
  addressesOf(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<ActorAddress[]>;
  /** Commits of one actor, oldest first, with version > `afterVersion`, at most `limit`. */
  history(address: ActorAddress, afterVersion: number, limit: number): Promise<StoredCommit[]>;
  /**
   * Delivers every stored commit of a shard from `fromSequence` on, in order, each at least once, the handler awaited;
   * goes on by itself after the server was away. A handler that throws gets the same commit again after a pause.
   * Tombstones go to `onForgotten`, in the same order. Messages that no reader understands are reported and left out.
   */
  tail(shard: ActorAddress['shard'], fromSequence: number, handler: TailHandler, onForgotten?: ForgottenHandler): Promise<Tail>;
  /** First and last sequence of the shard's stream and when it was made; a projection compares it with its own. */
  bounds(shard: ActorAddress['shard']): Promise<{ firstSequence: number; lastSequence: number; createdAt: string }>;
  /**
   * Replaces an ended actor's whole history by a tombstone that itself disappears after `ttlMs`.
   * Same outcomes as `append`; after it `last` answers null and a further append must expect the tombstone's sequence.
   */
  forget(address: ActorAddress, expectedSequence: number, ttlMs: number): Promise<AppendOutcome>;
}
