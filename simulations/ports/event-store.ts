/**
 * The server's side of the event log: what a stream takes, refuses, recognises and forgets. No promise, no delay; time comes in.
 *
 * `exact` keeps bytes and every message, as a server does: what does not survive JSON shows. `lean` keeps the newest commit of
 * each actor as the very object that was appended, without its events, so that 380,000 of them fit; it cannot be tailed and measures no sizes. Otherwise
 * both answer alike (`event-store.prop.spec.ts`).
 */
import type { Commit } from '#bus/envelope.ts';
import { type WireError, wireError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { type ActorAddress, commitSubject } from '#bus/subjects.ts';
import type { AppendOutcome, AppendRequest, StoredCommit } from '#actors/ports/event-log.ts';
import { commitHeaders, conflictError, type Entry, headerBytes, readEntry, tombstoneHeaders, tombstoneId, tooLargeError } from '#adapters/commit-message.ts';
import { PORT_LIMITS } from './limits.ts';
import { keyOf, type MessageKey, MessageIds } from './message-ids.ts';

export type Keeping = 'exact' | 'lean';
/** `body` is null in a tombstone. */
export type Message = {
  readonly address: ActorAddress;
  readonly sequence: number;
  /** As the memory of ids keeps it. */
  readonly key: MessageKey;
  readonly body: Commit | Uint8Array | null;
  readonly expiresAtMs: number;
};
type Actor = { readonly address: ActorAddress; last: Message; readonly history: Message[] | null };
type Known = { readonly actor: Actor; readonly sequence: number };
export type StoredObserver = (message: Message, commit: Commit | null, messageId: string) => void;
type Actors = Map<string, Actor>;
type ByHome = Map<string, Actors>;
type ByKind = Map<string, ByHome>;

export type EventStoreOptions = {
  readonly shards: readonly Shard[];
  readonly keeping: Keeping;
  readonly duplicateWindowMs?: number;
  readonly maxPayloadBytes?: number;
};

class Shelf {
  lastSequence = 0;
  readonly messages: Message[] = [];
  readonly ids: MessageIds<Known>;
  constructor(windowMs: number) {
    this.ids = new MessageIds(windowMs);
  }
}

export class EventStore {
  readonly #o: EventStoreOptions;
  readonly #shelves = new Map<Shard, Shelf>();
  /** Shard → project → kind → home → id → actor: what one Edge asks for at its start lies together, and no string is made to find one. */
  readonly #shards = new Map<string, Map<string, ByKind>>();
  readonly #observers: StoredObserver[] = [];

  constructor(options: EventStoreOptions) {
    this.#o = options;
    for (const shard of options.shards) this.#shelves.set(shard, new Shelf(options.duplicateWindowMs ?? PORT_LIMITS.duplicateWindowMs));
  }

  /** Called with each message right after it was stored, in order. `commit` is what was given, before it became bytes. */
  observe(observer: StoredObserver): void {
    this.#observers.push(observer);
  }

  append(nowMs: number, { address, commit, expectedSequence, messageId }: AppendRequest): AppendOutcome {
    const exact = this.#o.keeping === 'exact';
    const bytes = exact ? Buffer.from(JSON.stringify(commit), 'utf8') : null;
    const refused = bytes && this.#tooLarge(address, bytes.byteLength + headerBytes(commitHeaders(messageId, expectedSequence)));
    if (refused) return refused;
    return this.#write(nowMs, address, exact ? bytes : commit, commit, expectedSequence, messageId, Number.POSITIVE_INFINITY, false);
  }

  forget(nowMs: number, address: ActorAddress, expectedSequence: number, ttlMs: number): AppendOutcome {
    const messageId = tombstoneId(address, expectedSequence);
    const seconds = Number.parseInt(tombstoneHeaders(messageId, expectedSequence, ttlMs)['Nats-TTL'] ?? '1', 10);
    return this.#write(nowMs, address, null, null, expectedSequence, messageId, nowMs + seconds * 1_000, true);
  }

  /** Stores bytes as they are, with nothing expected: what a foreign or newer program may have written. */
  inject(nowMs: number, address: ActorAddress, data: Uint8Array): void {
    this.#store(nowMs, address, Uint8Array.from(data), null, '', Number.POSITIVE_INFINITY, false, '');
  }

  last(nowMs: number, address: ActorAddress): Entry | null {
    const actor = this.#find(nowMs, address);
    return actor ? entryOf(actor.last) : null;
  }

  lastOfEach(nowMs: number, filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Entry[] {
    const newest: Message[] = [];
    for (const kinds of chosen(this.#shards.get(filter.shard), filter.project))
      for (const homes of chosen(kinds, filter.kind))
        for (const actors of chosen(homes, filter.home))
          for (const { last } of actors.values()) if (last.expiresAtMs > nowMs && (!filter.id || last.address.id === filter.id)) newest.push(last);
    return newest.sort((a, b) => a.sequence - b.sequence).map(entryOf);
  }

  history(nowMs: number, address: ActorAddress): Entry[] {
    const actor = this.#find(nowMs, address);
    return actor ? (actor.history ?? [actor.last]).map(entryOf) : [];
  }

  /** First message of a shard at or after a sequence; only where everything is kept. */
  from(nowMs: number, shard: Shard, sequence: number): Message | null {
    const { messages } = this.#shelf(shard);
    let [low, high] = [0, messages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((messages[middle] as Message).sequence < sequence) low = middle + 1;
      else high = middle;
    }
    for (; low < messages.length; low += 1) if ((messages[low] as Message).expiresAtMs > nowMs) return messages[low] as Message;
    return null;
  }

  bounds(shard: Shard): { firstSequence: number; lastSequence: number } {
    const { messages, lastSequence } = this.#shelf(shard);
    return { firstSequence: messages[0]?.sequence ?? lastSequence + 1, lastSequence };
  }

  has(shard: Shard): boolean {
    return this.#shelves.has(shard);
  }

  /** Every actor's newest message, for whoever audits the whole log. */
  *actors(): Generator<Message> {
    for (const projects of this.#shards.values())
      for (const kinds of projects.values())
        for (const homes of kinds.values()) for (const actors of homes.values()) for (const { last } of actors.values()) yield last;
  }

  #tooLarge(address: ActorAddress, bytes: number): AppendOutcome | null {
    const limitBytes = this.#o.maxPayloadBytes ?? PORT_LIMITS.maxPayloadBytes;
    return bytes > limitBytes ? { outcome: 'not_applied', reason: 'rejected', error: tooLargeError(commitSubject(address), bytes, limitBytes) } : null;
  }

  #write(
    nowMs: number,
    address: ActorAddress,
    body: Message['body'],
    commit: Commit | null,
    expectedSequence: number,
    messageId: string,
    expiresAtMs: number,
    rollup: boolean,
  ): AppendOutcome {
    const key = keyOf(messageId, this.#o.keeping === 'lean');
    const known = this.#shelf(address.shard).ids.get(nowMs, key);
    const actor = this.#find(nowMs, address);
    if (!known && (actor?.last.sequence ?? 0) === expectedSequence) {
      const sequence = this.#store(nowMs, address, body, commit, key, expiresAtMs, rollup, messageId);
      return { outcome: 'applied', sequence };
    }
    // What follows the expected sequence tells whether an earlier repetition was stored.
    const follower = actor && followerOf(actor, expectedSequence);
    if (follower && follower.key === key) return { outcome: 'applied', sequence: follower.sequence };
    if (known && actor && known.actor === actor && actor.history === null) return { outcome: 'applied', sequence: known.sequence };
    if (follower || !known) return { outcome: 'not_applied', reason: 'conflict', error: conflictError(commitSubject(address), expectedSequence) };
    return { outcome: 'unknown', error: unavailable(commitSubject(address)) };
  }

  #store(
    nowMs: number,
    address: ActorAddress,
    body: Message['body'],
    commit: Commit | null,
    key: MessageKey,
    expiresAtMs: number,
    rollup: boolean,
    messageId: string,
  ): number {
    const shelf = this.#shelf(address.shard);
    shelf.lastSequence += 1;
    const message: Message = { address, sequence: shelf.lastSequence, key, body, expiresAtMs };
    const actor = this.#place(address, message, rollup);
    if (this.#o.keeping === 'exact') {
      if (rollup) removeWhere(shelf.messages, (m) => m.address.id === address.id && commitSubject(m.address) === commitSubject(address));
      shelf.messages.push(message);
    }
    if (key !== '') shelf.ids.remember(nowMs, key, { actor, sequence: message.sequence });
    for (const observer of this.#observers) observer(message, commit, messageId);
    if (this.#o.keeping === 'lean' && commit) slim(commit);
    return message.sequence;
  }

  #place(address: ActorAddress, message: Message, rollup: boolean): Actor {
    const kinds = at(at(this.#shards, address.shard), address.project);
    const group = at(at(kinds, address.kind), address.home);
    let actor = group.get(address.id);
    if (!actor) {
      actor = { address, last: message, history: this.#o.keeping === 'exact' ? [] : null };
      group.set(address.id, actor);
    }
    if (rollup) actor.history?.splice(0);
    actor.history?.push(message);
    actor.last = message;
    return actor;
  }

  #find(nowMs: number, address: ActorAddress): Actor | undefined {
    const group = this.#shards.get(address.shard)?.get(address.project)?.get(address.kind)?.get(address.home);
    const actor = group?.get(address.id);
    if (!group || !actor || actor.last.expiresAtMs > nowMs) return actor;
    group.delete(address.id);
    return undefined;
  }

  #shelf(shard: Shard): Shelf {
    const shelf = this.#shelves.get(shard);
    if (!shelf) throw new Error(`no stream for shard ${shard}`);
    return shelf;
  }
}

/** The map below a key, made when it is the first. */
const at = <V extends Map<string, unknown>>(above: Map<string, V>, key: string): V => {
  const below = above.get(key);
  if (below) return below;
  const made = new Map() as V;
  above.set(key, made);
  return made;
};
/** The one below a key, or all of them. */
const chosen = <V>(above: ReadonlyMap<string, V> | undefined, key: string | undefined): Iterable<V> => {
  if (!above) return [];
  if (key === undefined) return above.values();
  const one = above.get(key);
  return one === undefined ? [] : [one];
};
const SEEN: Pick<Commit, 'events' | 'causationId'> = { events: [], causationId: undefined };

/** Lets go of what nobody reads of a newest commit, once those who watch have seen it. */
const slim = (commit: Commit): void => {
  Object.assign(commit, SEEN);
  commit.commandId.charCodeAt(0); // a string put together from parts becomes one, and the parts may go
};

const followerOf = ({ history, last }: Actor, sequence: number): Message | undefined =>
  history ? history.find((m) => m.sequence > sequence) : last.sequence > sequence ? last : undefined;

/** In place: whoever tails holds the array. */
const removeWhere = <T>(items: T[], matches: (item: T) => boolean): void => {
  let kept = 0;
  for (const item of items) if (!matches(item)) items[kept++] = item;
  items.length = kept;
};

export const entryOf = ({ address, sequence, body }: Message): Entry => {
  if (body === null) return { kind: 'forgotten', address, sequence };
  if (body instanceof Uint8Array) return readEntry({ subject: commitSubject(address), sequence, data: body });
  return { kind: 'commit', stored: { address, sequence, commit: body } };
};

export const commitOf = (entry: Entry | null): StoredCommit | null => (entry?.kind === 'commit' ? entry.stored : null);

export const unavailable = (what: string): WireError => wireError('BUS_UNAVAILABLE', `${what}: the bus does not answer; repeat it with the same id`);
