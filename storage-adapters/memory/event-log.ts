/**
 * The event log in memory, with the semantics of the real one: what it answers, and when, is what JetStream would.
 * For tests and the simulation. Deterministic: time comes from the clock given, faults from the function given.
 */
import type { AppendOutcome, AppendRequest, EventLog, ForgottenHandler, StoredCommit, Tail, TailHandler } from '#actors/ports/event-log.ts';
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { type ActorAddress, commitFilter, commitSubject, eventsStream, outSubject, parseCommitSubject } from '#bus/subjects.ts';
import {
  commitHeaders,
  conflictError,
  type Entry,
  HEADER,
  headerBytes,
  type Headers,
  readEntry,
  tombstoneHeaders,
  tombstoneId,
  tooLargeError,
  type Unreadable,
} from '../commit-message.ts';
import type { SchedulingClock } from './clock.ts';
import { MEMORY_LIMITS } from './limits.ts';
import { MemoryStream, subjectMatches } from './stream.ts';
import { MemoryTail } from './tail.ts';

/** `lost_request` never reaches the log; `lost_answer` is stored and its writer does not learn it. */
export type WriteFault = 'none' | 'lost_request' | 'lost_answer';

export type MemoryEventLogOptions = {
  readonly shards: readonly Shard[];
  readonly clock: SchedulingClock;
  readonly duplicateWindowMs?: number;
  readonly maxPayloadBytes?: number;
  /** Asked before every write. */
  readonly fault?: (address: ActorAddress, messageId: string) => WriteFault;
  /** What `dsec.out` would carry: stored messages only, after they are stored. */
  readonly republish?: (subject: string, data: Uint8Array, sequence: number) => void;
  readonly unreadable?: (unreadable: Unreadable) => void;
};

export class MemoryEventLog implements EventLog {
  readonly #options: MemoryEventLogOptions;
  readonly #streams = new Map<Shard, MemoryStream>();
  readonly #createdAt: string;
  readonly #tails = new Set<MemoryTail>();
  #connected = true;

  constructor(options: MemoryEventLogOptions) {
    this.#options = options;
    this.#createdAt = new Date(options.clock.now()).toISOString();
    for (const shard of options.shards) this.#streams.set(shard, new MemoryStream(options.duplicateWindowMs ?? MEMORY_LIMITS.duplicateWindowMs));
  }

  /** While false, writes are `unknown`, reads fail and tails stand still. What is stored stays. */
  setConnected(connected: boolean): void {
    this.#connected = connected;
    this.#wakeTails();
  }
  get isConnected(): boolean {
    return this.#connected;
  }

  /** Stores bytes as they are, with nothing expected: what a foreign or newer program may have written. */
  inject(address: ActorAddress, data: Uint8Array): void {
    this.#read(address.shard).store(this.#now(), commitSubject(address), data, {});
    this.#wakeTails();
  }

  async append({ address, commit, expectedSequence, messageId }: AppendRequest): Promise<AppendOutcome> {
    return this.#write(address, Buffer.from(JSON.stringify(commit), 'utf8'), expectedSequence, commitHeaders(messageId, expectedSequence));
  }

  async forget(address: ActorAddress, expectedSequence: number, ttlMs: number): Promise<AppendOutcome> {
    return this.#write(address, new Uint8Array(), expectedSequence, tombstoneHeaders(tombstoneId(address, expectedSequence), expectedSequence, ttlMs));
  }

  async last(address: ActorAddress): Promise<StoredCommit | null> {
    const message = this.#read(address.shard).last(this.#now(), commitSubject(address));
    return message ? commitOrThrow(readEntry(message)) : null;
  }

  async lastOfEach(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<StoredCommit[]> {
    const subjects = commitFilter(filter);
    const entries = this.#read(filter.shard)
      .lastOfEach(this.#now(), (subject) => subjectMatches(subjects, subject))
      .map(readEntry);
    for (const entry of entries) {
      if (entry.kind !== 'unreadable') continue;
      if (entry.unreadable.error.code === 'UNSUPPORTED_VERSION') throw new DsecError(entry.unreadable.error);
      this.#options.unreadable?.(entry.unreadable);
    }
    return entries.flatMap((entry) => (entry.kind === 'commit' ? [entry.stored] : []));
  }

  async addressesOf(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<ActorAddress[]> {
    const subjects = commitFilter(filter);
    const found = this.#read(filter.shard).lastOfEach(this.#now(), (subject) => subjectMatches(subjects, subject));
    return found.flatMap(({ subject }) => parseCommitSubject(subject) ?? []);
  }

  async history(address: ActorAddress, afterVersion: number, limit: number): Promise<StoredCommit[]> {
    const commits = this.#read(address.shard)
      .ofSubject(this.#now(), commitSubject(address))
      .map((message) => commitOrThrow(readEntry(message)));
    return commits
      .filter((stored) => stored !== null)
      .filter(({ commit }) => commit.version > afterVersion)
      .slice(0, Math.max(0, limit));
  }

  async tail(shard: Shard, fromSequence: number, handler: TailHandler, onForgotten?: ForgottenHandler): Promise<Tail> {
    const stream = this.#read(shard);
    const tail = new MemoryTail({
      next: (sequence) => (this.#connected ? stream.from(this.#now(), sequence) : null),
      fromSequence,
      clock: this.#options.clock,
      handle: async (message) => {
        const entry = readEntry(message);
        if (entry.kind === 'commit') await handler(entry.stored);
        else if (entry.kind === 'forgotten') await onForgotten?.({ address: entry.address, sequence: entry.sequence });
        else this.#options.unreadable?.(entry.unreadable);
      },
      onClose: () => void this.#tails.delete(tail),
    });
    this.#tails.add(tail);
    return tail;
  }

  async bounds(shard: Shard): Promise<{ firstSequence: number; lastSequence: number; createdAt: string }> {
    const stream = this.#read(shard);
    return { firstSequence: stream.firstSequence(), lastSequence: stream.lastSequence, createdAt: this.#createdAt };
  }

  #write(address: ActorAddress, data: Uint8Array, expectedSequence: number, headers: Headers): AppendOutcome {
    const subject = commitSubject(address);
    const limitBytes = this.#options.maxPayloadBytes ?? MEMORY_LIMITS.maxPayloadBytes;
    const bytes = data.byteLength + headerBytes(headers);
    if (bytes > limitBytes) return { outcome: 'not_applied', reason: 'rejected', error: tooLargeError(subject, bytes, limitBytes) };
    const messageId = headers[HEADER.messageId] ?? '';
    const stream = this.#streams.get(address.shard);
    const fault = this.#options.fault?.(address, messageId) ?? 'none';
    if (!stream || !this.#connected || fault === 'lost_request') return { outcome: 'unknown', error: unavailable(subject) };
    const outcome = this.#store(stream, address, data, expectedSequence, headers);
    return fault === 'lost_answer' ? { outcome: 'unknown', error: unavailable(subject) } : outcome;
  }

  #store(stream: MemoryStream, address: ActorAddress, data: Uint8Array, expectedSequence: number, headers: Headers): AppendOutcome {
    const subject = commitSubject(address);
    const stored = stream.store(this.#now(), subject, data, headers);
    if (stored.kind === 'stored') {
      this.#options.republish?.(outSubject(address), data, stored.sequence);
      this.#wakeTails();
      return { outcome: 'applied', sequence: stored.sequence };
    }
    // What follows the expected sequence on the subject tells whether an earlier repetition was stored.
    const follower = stream.ofSubject(this.#now(), subject).find(({ sequence }) => sequence > expectedSequence);
    if (follower && follower.messageId === headers[HEADER.messageId]) return { outcome: 'applied', sequence: follower.sequence };
    if (follower || stored.kind === 'wrong_sequence') return { outcome: 'not_applied', reason: 'conflict', error: conflictError(subject, expectedSequence) };
    return { outcome: 'unknown', error: unavailable(subject) };
  }

  #read(shard: Shard): MemoryStream {
    const stream = this.#streams.get(shard);
    if (!stream) throw DsecError.of('BUS_MISCONFIGURED', `stream ${eventsStream(shard)} does not exist`);
    if (!this.#connected) throw new DsecError(unavailable(eventsStream(shard)));
    return stream;
  }

  #now(): number {
    return this.#options.clock.now();
  }

  #wakeTails(): void {
    for (const tail of this.#tails) tail.wake();
  }
}

const unavailable = (what: string): WireError => wireError('BUS_UNAVAILABLE', `${what}: the bus does not answer; repeat it with the same id`);

const commitOrThrow = (entry: Entry): StoredCommit | null => {
  if (entry.kind === 'unreadable') throw new DsecError(entry.unreadable.error);
  return entry.kind === 'commit' ? entry.stored : null;
};
