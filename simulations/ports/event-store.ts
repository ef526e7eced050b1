/**
 * The server's side of the event log: what a stream takes, refuses, recognises and forgets. No promise, no delay; time comes in.
 *
 * `exact` keeps bytes and every message, as a server does: what does not survive JSON shows. `lean` keeps the newest commit of
 * each actor as the very object that was appended, without its events, so that 380,000 of them fit, and two numbers of what was
 * forgotten, so that three million of them do; it cannot be tailed and measures no sizes. Otherwise both answer alike (`event-store.prop.spec.ts`).
 */
import type { Commit } from '#bus/envelope.ts';
import { type WireError, wireError } from '#bus/errors.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
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
  /** As the memory of ids keeps it; null where the body is the commit itself, which tells as much. */
  readonly key: MessageKey | null;
  readonly body: Commit | Uint8Array | null;
  /** Null: it stays. */
  readonly expiresAtMs: number | null;
};
export type StoredObserver = (message: Message, commit: Commit | null, messageId: string) => void;
/** By id; the newest message of each. */
type Actors = Map<string, Message>;
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
  readonly ids: MessageIds;
  /** Lean: what was forgotten, by a hash of its address, with the sequence of its tombstone. */
  readonly tombs = new MessageIds(KEY_LIMITS.tombstoneTtlMs);
  constructor(windowMs: number) {
    this.ids = new MessageIds(windowMs);
  }
}

export class EventStore {
  readonly #o: EventStoreOptions;
  readonly #shelves = new Map<Shard, Shelf>();
  /** Shard → project → kind → home → id → actor: what one Edge asks for at its start lies together, and no string is made to find one. */
  readonly #shards = new Map<string, Map<string, ByKind>>();
  /** By subject, where everything is kept. */
  readonly #histories = new Map<string, Message[]>();
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
    return this.#write(nowMs, address, exact ? bytes : commit, commit, expectedSequence, messageId, null, false);
  }

  forget(nowMs: number, address: ActorAddress, expectedSequence: number, ttlMs: number): AppendOutcome {
    const messageId = tombstoneId(address, expectedSequence);
    const seconds = Number.parseInt(tombstoneHeaders(messageId, expectedSequence, ttlMs)['Nats-TTL'] ?? '1', 10);
    return this.#write(nowMs, address, null, null, expectedSequence, messageId, nowMs + seconds * 1_000, true);
  }

  /** Stores bytes as they are, with nothing expected: what a foreign or newer program may have written. */
  inject(nowMs: number, address: ActorAddress, data: Uint8Array): void {
    this.#store(nowMs, address, Uint8Array.from(data), null, null, null, false, '');
  }

  last(nowMs: number, address: ActorAddress): Entry | null {
    const newest = this.#newest(nowMs, address);
    return newest ? entryOf(newest) : null;
  }

  lastOfEach(nowMs: number, filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Entry[] {
    const newest: Message[] = [];
    for (const kinds of chosen(this.#shards.get(filter.shard), filter.project))
      for (const homes of chosen(kinds, filter.kind))
        for (const actors of chosen(homes, filter.home))
          for (const last of actors.values()) if (!isOver(last, nowMs) && (!filter.id || last.address.id === filter.id)) newest.push(last);
    return newest.sort((a, b) => a.sequence - b.sequence).map(entryOf);
  }

  history(nowMs: number, address: ActorAddress): Entry[] {
    const newest = this.#newest(nowMs, address);
    return newest ? (this.#histories.get(commitSubject(address)) ?? [newest]).map(entryOf) : [];
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
    for (; low < messages.length; low += 1) if (!isOver(messages[low] as Message, nowMs)) return messages[low] as Message;
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
      for (const kinds of projects.values()) for (const homes of kinds.values()) for (const actors of homes.values()) yield* actors.values();
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
    expiresAtMs: Message['expiresAtMs'],
    rollup: boolean,
  ): AppendOutcome {
    const key = keyOf(messageId);
    const known = this.#shelf(address.shard).ids.get(nowMs, key);
    const newest = this.#newest(nowMs, address);
    if (known === undefined && (newest?.sequence ?? 0) === expectedSequence) {
      const sequence = this.#store(nowMs, address, body, commit, key, expiresAtMs, rollup, messageId);
      return { outcome: 'applied', sequence };
    }
    // What follows the expected sequence tells whether an earlier repetition was stored.
    const follower = newest && this.#followerOf(newest, expectedSequence);
    if (follower && (follower.key === key || (follower.key === null && isSame(follower.body as Commit | null, commit))))
      return { outcome: 'applied', sequence: follower.sequence };
    if (known !== undefined && newest && this.#o.keeping === 'lean') return { outcome: 'applied', sequence: known };
    if (follower || known === undefined) return { outcome: 'not_applied', reason: 'conflict', error: conflictError(commitSubject(address), expectedSequence) };
    return { outcome: 'unknown', error: unavailable(commitSubject(address)) };
  }

  #store(
    nowMs: number,
    address: ActorAddress,
    body: Message['body'],
    commit: Commit | null,
    key: MessageKey | null,
    expiresAtMs: Message['expiresAtMs'],
    rollup: boolean,
    messageId: string,
  ): number {
    const shelf = this.#shelf(address.shard);
    shelf.lastSequence += 1;
    const message: Message = { address, sequence: shelf.lastSequence, key: commit && body === commit ? null : key, body, expiresAtMs };
    const group = at(at(at(at(this.#shards, address.shard), address.project), address.kind), address.home);
    if (this.#o.keeping === 'lean' && expiresAtMs !== null) {
      group.delete(address.id);
      shelf.tombs.remember(expiresAtMs - KEY_LIMITS.tombstoneTtlMs, keyOf(commitSubject(address)), message.sequence);
    } else group.set(address.id, message);
    if (this.#o.keeping === 'exact') this.#keep(shelf, message, rollup);
    if (key !== null) shelf.ids.remember(nowMs, key, message.sequence);
    for (const observer of this.#observers) observer(message, commit, messageId);
    if (this.#o.keeping === 'lean' && commit) slim(commit);
    return message.sequence;
  }

  #keep(shelf: Shelf, message: Message, rollup: boolean): void {
    const subject = commitSubject(message.address);
    const before = rollup ? [] : (this.#histories.get(subject) ?? []);
    before.push(message);
    this.#histories.set(subject, before);
    if (rollup) removeWhere(shelf.messages, (m) => m.address.id === message.address.id && commitSubject(m.address) === subject);
    shelf.messages.push(message);
  }

  #newest(nowMs: number, address: ActorAddress): Message | undefined {
    const group = this.#shards.get(address.shard)?.get(address.project)?.get(address.kind)?.get(address.home);
    const newest = group?.get(address.id);
    if (!newest && this.#o.keeping === 'lean') return this.#tombOf(nowMs, address);
    if (!group || !newest || !isOver(newest, nowMs)) return newest;
    group.delete(address.id);
    if (this.#histories.size > 0) this.#histories.delete(commitSubject(address));
    return undefined;
  }

  #tombOf(nowMs: number, address: ActorAddress): Message | undefined {
    const sequence = this.#shelves.get(address.shard)?.tombs.get(nowMs, keyOf(commitSubject(address)));
    return sequence === undefined ? undefined : { address, sequence, key: null, body: null, expiresAtMs: null };
  }

  #followerOf(newest: Message, sequence: number): Message | undefined {
    if (this.#o.keeping === 'exact') return this.#histories.get(commitSubject(newest.address))?.find((m) => m.sequence > sequence);
    return newest.sequence > sequence ? newest : undefined;
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
const NO_EVENTS: Commit['events'] = [];
const isOver = ({ expiresAtMs }: Message, nowMs: number): boolean => expiresAtMs !== null && expiresAtMs <= nowMs;

/** Whether it is the commit that an id named, from what ids are made of. */
const isSame = (stored: Commit | null, tried: Commit | null): boolean =>
  stored !== null && tried !== null && stored.version === tried.version && stored.commandId === tried.commandId && stored.at === tried.at;

/** Lets go of what nobody reads of a newest commit, once those who watch have seen it. */
const slim = (commit: { -readonly [K in keyof Commit]: Commit[K] }): void => {
  commit.events = NO_EVENTS;
  if (commit.causationId !== undefined) commit.causationId = undefined;
  commit.commandId.charCodeAt(0); // a string put together from parts becomes one, and the parts may go
};

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
