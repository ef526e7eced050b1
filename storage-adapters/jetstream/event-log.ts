/**
 * The event log on JetStream: one stream per shard, one subject per actor, one message per commit.
 *
 * INV-CAS: a commit is stored only directly after the one its writer had seen, because every publish carries the expected
 * sequence. Hence what follows that sequence on the subject tells, for ever, whether an append of ours was stored; that is
 * how a repetition that the server refuses or calls a duplicate is settled.
 */
import type { AppendOutcome, AppendRequest, EventLog, ForgottenHandler, StoredCommit, Tail, TailHandler } from '#actors/ports/event-log.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { type ActorAddress, commitFilter, commitSubject, eventsStream, parseCommitSubject } from '#bus/subjects.ts';
import {
  commitHeaders,
  conflictError,
  type Entry,
  HEADER,
  type Headers,
  readEntry,
  tombstoneHeaders,
  tombstoneId,
  type Unreadable,
} from '../commit-message.ts';
import type { BusContext } from './context.ts';
import { noAnswerError } from './errors.ts';
import { readOnce } from './one-shot.ts';
import type { Publisher } from './publisher.ts';
import type { Reader, ReadFrom } from './reader.ts';
import { StreamTail } from './tail.ts';

/** By subject; null for an actor that has no commit to show: forgotten, or unreadable. */
type Newest = Map<string, StoredCommit | null>;

export class JetStreamEventLog implements EventLog {
  readonly #context: BusContext;
  readonly #publisher: Publisher;
  readonly #reader: Reader;
  readonly #readFrom: ReadFrom;

  constructor(context: BusContext, publisher: Publisher, reader: Reader, readFrom: ReadFrom) {
    this.#context = context;
    this.#publisher = publisher;
    this.#reader = reader;
    this.#readFrom = readFrom;
  }

  append({ address, commit, expectedSequence, messageId }: AppendRequest): Promise<AppendOutcome> {
    return this.#write(address, Buffer.from(JSON.stringify(commit), 'utf8'), expectedSequence, commitHeaders(messageId, expectedSequence));
  }

  forget(address: ActorAddress, expectedSequence: number, ttlMs: number): Promise<AppendOutcome> {
    return this.#write(address, new Uint8Array(), expectedSequence, tombstoneHeaders(tombstoneId(address, expectedSequence), expectedSequence, ttlMs));
  }

  async last(address: ActorAddress): Promise<StoredCommit | null> {
    const message = await this.#reader.last(eventsStream(address.shard), commitSubject(address), this.#readFrom);
    return message ? commitOrThrow(readEntry(message)) : null;
  }

  async lastOfEach(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<StoredCommit[]> {
    const newest: Newest = new Map();
    const subjects = commitFilter(filter);
    await readOnce(this.#context, eventsStream(filter.shard), { deliver_policy: 'last_per_subject', filter_subject: subjects }, (message) => {
      newest.set(message.subject, this.#commitOrLeftOut(readEntry(message)));
      return true;
    });
    if (this.#readFrom === 'leader') await this.#addWhatTheReplicaLacked(filter.shard, subjects, newest);
    return [...newest.values()].filter((stored) => stored !== null).sort((a, b) => a.sequence - b.sequence);
  }

  async addressesOf(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>): Promise<ActorAddress[]> {
    const subjects = await this.#context.api.subjectsOf(eventsStream(filter.shard), commitFilter(filter));
    return subjects.flatMap((subject) => parseCommitSubject(subject) ?? []);
  }

  async history(address: ActorAddress, afterVersion: number, limit: number): Promise<StoredCommit[]> {
    const commits: StoredCommit[] = [];
    if (limit <= 0) return commits;
    await readOnce(this.#context, eventsStream(address.shard), { deliver_policy: 'all', filter_subject: commitSubject(address) }, (message) => {
      const stored = commitOrThrow(readEntry(message));
      if (stored && stored.commit.version > afterVersion) commits.push(stored);
      return commits.length < limit;
    });
    return commits;
  }

  async tail(shard: Shard, fromSequence: number, handler: TailHandler, onForgotten?: ForgottenHandler): Promise<Tail> {
    await this.bounds(shard); // a stream that does not exist is told to the caller, not retried for ever
    return new StreamTail(this.#context, eventsStream(shard), fromSequence, async (message) => {
      const entry = readEntry(message);
      if (entry.kind === 'commit') await handler(entry.stored);
      else if (entry.kind === 'forgotten') await onForgotten?.({ address: entry.address, sequence: entry.sequence });
      else this.#leaveOut(entry.unreadable);
    });
  }

  async bounds(shard: Shard): Promise<{ firstSequence: number; lastSequence: number; createdAt: string }> {
    const { state, created } = await this.#context.api.streamInfo(eventsStream(shard));
    return { firstSequence: state.first_seq, lastSequence: state.last_seq, createdAt: created };
  }

  async #write(address: ActorAddress, data: Uint8Array, expectedSequence: number, headers: Headers): Promise<AppendOutcome> {
    const published = await this.#publisher.publish(commitSubject(address), data, headers);
    if (published.outcome === 'rejected') return { outcome: 'not_applied', reason: 'rejected', error: published.error };
    if (published.outcome === 'unknown') return published;
    if (published.outcome === 'stored' && !published.duplicate) return { outcome: 'applied', sequence: published.sequence };
    return this.#settle(address, expectedSequence, headers[HEADER.messageId] ?? '', published.outcome === 'conflict');
  }

  /** The server refused, or says that it has had this id before: looks at what was stored in the place that we wanted. */
  async #settle(address: ActorAddress, expectedSequence: number, messageId: string, refused: boolean): Promise<AppendOutcome> {
    const subject = commitSubject(address);
    try {
      const follower = await this.#reader.nextAfter(eventsStream(address.shard), subject, expectedSequence);
      if (follower?.messageId === messageId) return { outcome: 'applied', sequence: follower.sequence };
      if (follower || refused) return { outcome: 'not_applied', reason: 'conflict', error: conflictError(subject, expectedSequence) };
      // "Duplicate", yet not there: noted by a leader that fell before it stored it. Stored again once the window is over.
      return { outcome: 'unknown', error: noAnswerError(subject, 'timeout') };
    } catch (thrown) {
      return { outcome: 'unknown', error: toWireError(thrown) };
    }
  }

  /** The reading consumer may live on a replica that is behind. An actor that is missing would be taken for one that never was. */
  async #addWhatTheReplicaLacked(shard: Shard, subjects: string, newest: Newest): Promise<void> {
    for (const subject of await this.#context.api.subjectsOf(eventsStream(shard), subjects)) {
      if (newest.has(subject)) continue;
      const message = await this.#reader.last(eventsStream(shard), subject, 'leader');
      if (message) newest.set(subject, this.#commitOrLeftOut(readEntry(message)));
    }
  }

  /** An actor of a newer program is not the same as no actor: who rehydrates must stop, or would destroy what it does not know. */
  #commitOrLeftOut(entry: Entry): StoredCommit | null {
    if (entry.kind === 'commit') return entry.stored;
    if (entry.kind === 'unreadable') {
      if (entry.unreadable.error.code === 'UNSUPPORTED_VERSION') throw new DsecError(entry.unreadable.error);
      this.#leaveOut(entry.unreadable);
    }
    return null;
  }

  /** One message that nobody can read must not keep all other actors of the shard away. */
  #leaveOut({ subject, sequence, error }: Unreadable): void {
    this.#context.report({ event: 'commit_unreadable', subject, sequence, code: error.code, message: error.message });
  }
}

const commitOrThrow = (entry: Entry): StoredCommit | null => {
  if (entry.kind === 'unreadable') throw new DsecError(entry.unreadable.error);
  return entry.kind === 'commit' ? entry.stored : null;
};
