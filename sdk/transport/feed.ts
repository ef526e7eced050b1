/**
 * Shares subscriptions to stored commits (`dsec.out`) among everything in this process that follows actors.
 *
 * One actor is followed on its own subject, or, when many of one Edge are followed together, through one wildcard per
 * (shard, project, kind, home). A commit may arrive twice (both kinds open) or never: followers compare versions and
 * catch up by asking.
 */
import { type Commit, decodeCommit } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ActorAddress, outFilter, outSubject } from '#bus/subjects.ts';
import type { Bus, BusMessage } from './bus.ts';
import { translate } from './retry.ts';

export type Follower = { readonly onCommit: (commit: Commit, message: BusMessage) => void; readonly onFailure: (error: DsecError) => void };

type Shared = { count: number; stop: () => void };

export class Feed {
  readonly #bus: Bus;
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #subscriptions = new Map<string, Shared>();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Calls `follower` with each stored commit of the actor until the returned function is called. */
  follow(address: ActorAddress, follower: Follower, wide = false): () => void {
    const { shard, project, kind, home } = address;
    const subject = wide ? outFilter({ shard, project, kind, home }) : outSubject(address);
    const followers = this.#followers.get(address.id) ?? new Set();
    this.#followers.set(address.id, followers.add(follower));
    this.#acquire(subject, follower);
    let live = true;
    return () => {
      if (!live) return;
      live = false;
      followers.delete(follower);
      if (followers.size === 0) this.#followers.delete(address.id);
      this.#release(subject);
    };
  }

  /** Subscriptions open now; tests look at it for leaks. */
  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  #acquire(subject: string, follower: Follower): void {
    const shared = this.#subscriptions.get(subject);
    if (shared) {
      shared.count += 1;
      return;
    }
    const entry: Shared = { count: 1, stop: () => {} };
    this.#subscriptions.set(subject, entry);
    entry.stop = this.#bus.subscribe(
      subject,
      (message) => this.#deliver(message),
      (failure) => follower.onFailure(translate(failure, { what: 'following sandboxes', unavailable: 'API_UNAVAILABLE' })),
    );
  }

  #release(subject: string): void {
    const shared = this.#subscriptions.get(subject);
    if (!shared || --shared.count > 0) return;
    this.#subscriptions.delete(subject);
    shared.stop();
  }

  #deliver(message: BusMessage): void {
    const followers = this.#followers.get(message.subject.slice(message.subject.lastIndexOf('.') + 1));
    if (!followers) return;
    const commit = readCommit(message.data);
    if (commit) for (const follower of [...followers]) follower.onCommit(commit, message);
  }
}

/** What cannot be read is left out: the catch-up meets the same state in an answer, and reports it there. */
const readCommit = (data: Uint8Array): Commit | undefined => {
  if (data.byteLength === 0) return undefined; // the tombstone of a forgotten actor
  try {
    return decodeCommit(data);
  } catch (thrown) {
    if (thrown instanceof DsecError) return undefined;
    throw thrown;
  }
};
