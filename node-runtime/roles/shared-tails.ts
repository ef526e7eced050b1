/**
 * One reading of each shard for all roles of a process that follow the log: the server delivers, and the client unpacks, a commit once
 * instead of once for each of them.
 *
 * Each follower keeps what a tail promises: in order, without a gap, each commit at least once, its handler awaited. One whose handler
 * throws reads on by itself, so that it holds up nobody else, and so does one that begins further back; both come back when they have
 * caught up.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Shard } from '#bus/ids.ts';
import type { EventLog, ForgottenHandler, StoredCommit, Tail, TailHandler } from '#actors/ports/event-log.ts';
import { RETRY_LIMITS } from '#actors/kernel/work.ts';

type Forgotten = Parameters<ForgottenHandler>[0];
type Item = { readonly sequence: number; readonly commit: StoredCommit } | { readonly sequence: number; readonly forgotten: Forgotten };
type Feed = { readonly followers: Set<Follower>; readonly opened: Promise<Tail> /** Sequence of what was handed out last, or is just now. */; at: number };

export class SharedTails {
  readonly #feeds = new Map<Shard, Feed>();

  /** The same log; its tails are shared with those of the other logs that were given here. */
  of(log: EventLog): EventLog {
    return {
      append: (request) => log.append(request),
      last: (address) => log.last(address),
      lastOfEach: (filter) => log.lastOfEach(filter),
      addressesOf: (filter) => log.addressesOf(filter),
      history: (address, afterVersion, limit) => log.history(address, afterVersion, limit),
      bounds: (shard) => log.bounds(shard),
      forget: (address, expectedSequence, ttlMs) => log.forget(address, expectedSequence, ttlMs),
      tail: async (shard, fromSequence, handler, onForgotten) => {
        const follower = new Follower(log, shard, fromSequence, handler, onForgotten, (one) => this.#joins(one));
        await this.#begin(follower);
        return { close: () => this.#close(follower) };
      },
    };
  }

  async #begin(follower: Follower): Promise<void> {
    for (;;) {
      const feed = this.#feeds.get(follower.shard);
      if (!feed) return this.#open(follower);
      if (follower.handledTo < feed.at) return follower.readAlone();
      feed.followers.add(follower);
      try {
        await feed.opened;
        return;
      } catch {
        feed.followers.delete(follower); // whoever opened it is told; this one tries for itself
      }
    }
  }

  async #open(follower: Follower): Promise<void> {
    const { shard, log, handledTo } = follower;
    const followers = new Set([follower]);
    const opened = tailOf(log, shard, handledTo + 1, (item) => handOut(feed, item));
    const feed: Feed = { followers, opened, at: handledTo };
    this.#feeds.set(shard, feed);
    try {
      await opened;
    } catch (thrown) {
      this.#feeds.delete(shard);
      throw thrown;
    }
  }

  /** Called by one that reads alone, after each item: whether it has caught up, and reads with the others from here on. */
  #joins(follower: Follower): boolean {
    const feed = this.#feeds.get(follower.shard);
    if (!feed || feed.at > follower.handledTo) return false;
    feed.followers.add(follower);
    return true;
  }

  async #close(follower: Follower): Promise<void> {
    const feed = this.#feeds.get(follower.shard);
    feed?.followers.delete(follower);
    await follower.close();
    if (feed?.followers.size !== 0 || this.#feeds.get(follower.shard) !== feed) return;
    this.#feeds.delete(follower.shard);
    await (await feed.opened).close();
  }
}

const handOut = async (feed: Feed, item: Item): Promise<void> => {
  feed.at = Math.max(feed.at, item.sequence);
  for (const follower of [...feed.followers]) {
    try {
      const handling = follower.take(item);
      if (handling) await handling;
    } catch (thrown) {
      if (feed.followers.size === 1) throw thrown; // nobody is held up: offered again after a pause, as by any tail
      feed.followers.delete(follower);
      void follower.readAlone(RETRY_LIMITS.loadRetryMs);
    }
  }
};

class Follower {
  readonly log: EventLog;
  readonly shard: Shard;
  /** All up to here is handled. */
  handledTo: number;
  readonly #handler: TailHandler;
  readonly #onForgotten: ForgottenHandler | undefined;
  readonly #joins: (follower: Follower) => boolean;
  #running: Promise<void> | undefined;
  #alone: Promise<Tail> | undefined;
  #closed = false;

  constructor(
    log: EventLog,
    shard: Shard,
    fromSequence: number,
    handler: TailHandler,
    onForgotten: ForgottenHandler | undefined,
    joins: (follower: Follower) => boolean,
  ) {
    this.log = log;
    this.shard = shard;
    this.handledTo = Math.max(1, fromSequence) - 1;
    this.#handler = handler;
    this.#onForgotten = onForgotten;
    this.#joins = joins;
  }

  /** Hands over what is new to it; a promise only where the handler makes one. */
  take(item: Item): Promise<void> | undefined {
    if (this.#closed || item.sequence <= this.handledTo) return undefined;
    const handling = 'commit' in item ? this.#handler(item.commit) : this.#onForgotten?.(item.forgotten);
    if (!handling) {
      this.handledTo = item.sequence;
      return undefined;
    }
    this.#running = handling.then(() => {
      this.handledTo = item.sequence;
    });
    return this.#running;
  }

  /** Through a tail of its own, until it has caught up with the others. With a pause: after a failure, and again while the log is away. */
  async readAlone(pauseMs?: number): Promise<void> {
    while (!this.#closed) {
      if (pauseMs !== undefined) await delay(pauseMs);
      let isBack = false;
      const own = tailOf(this.log, this.shard, this.handledTo + 1, async (item) => {
        if (isBack) return;
        await this.take(item);
        isBack = !this.#closed && this.#joins(this);
        if (isBack) void own.then((tail) => tail.close());
      });
      this.#alone = own;
      try {
        await own;
        return;
      } catch (thrown) {
        if (pauseMs === undefined) throw thrown;
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running?.catch(() => {});
    const tail = await this.#alone?.catch(() => undefined);
    await tail?.close();
  }
}

const tailOf = (log: EventLog, shard: Shard, fromSequence: number, take: (item: Item) => Promise<void>): Promise<Tail> =>
  log.tail(
    shard,
    fromSequence,
    (commit) => take({ sequence: commit.sequence, commit }),
    (forgotten) => take({ sequence: forgotten.sequence, forgotten }),
  );
