/**
 * The event log as one process reaches it: over a link that may lose either half of the exchange, to a server that may be
 * away. Whoever hears nothing within the time to answer is told `unknown`, whatever became of the request.
 */
import { toWireError, type WireError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { type ActorAddress, commitSubject, eventsStream } from '#bus/subjects.ts';
import type { AppendOutcome, AppendRequest, StoredCommit } from '#actors/ports/event-log.ts';
import type { Random } from '../kernel/random.ts';
import { US_PER_MS, type VirtualTime } from '../kernel/virtual-time.ts';
import { EPOCH_MS } from '../kernel/clock.ts';
import { type EventStore, unavailable } from './event-store.ts';
import { PORT_LIMITS } from './limits.ts';
import type { Link } from './link.ts';
import { type SeenHandler, SimTail } from './tail.ts';

/** What may happen to a write at the server. `lost_answer` is stored and its writer does not learn it. */
export type WriteFault = 'none' | 'lost_request' | 'lost_answer';

/** The server: a store, whether it answers at all, and what its faults do to writes. */
export class BusServer {
  readonly time: VirtualTime;
  readonly random: Random;
  /** False while the server is down. */
  up = true;
  /** Until then the stream has no leader: nothing is stored and nothing answered, while core messages go on. */
  leaderlessUntilUs = 0;
  lostAnswerPerMille = 0;
  lostRequestPerMille = 0;
  /** Asked first; for tests that choose the very write. */
  nextFault: () => WriteFault = () => 'none';

  constructor(time: VirtualTime, random: Random) {
    this.time = time;
    this.random = random;
  }

  get nowMs(): number {
    return EPOCH_MS + Math.floor(this.time.nowUs / US_PER_MS);
  }

  get stores(): boolean {
    return this.up && this.time.nowUs >= this.leaderlessUntilUs;
  }

  faultOfWrite(): WriteFault {
    const fault = this.nextFault();
    if (fault !== 'none') return fault;
    if (this.random.chance(this.lostRequestPerMille)) return 'lost_request';
    return this.random.chance(this.lostAnswerPerMille) ? 'lost_answer' : 'none';
  }
}

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: WireError };

export class SimEventLog {
  readonly #server: BusServer;
  readonly #store: EventStore;
  readonly #link: Link;

  constructor(server: BusServer, store: EventStore, link: Link) {
    this.#server = server;
    this.#store = store;
    this.#link = link;
  }

  append(request: AppendRequest, done: (outcome: AppendOutcome) => void): void {
    this.#write('append', request.address, () => this.#store.append(this.#server.nowMs, request), done);
  }

  forget(address: ActorAddress, expectedSequence: number, ttlMs: number, done: (outcome: AppendOutcome) => void): void {
    this.#write('forget', address, () => this.#store.forget(this.#server.nowMs, address, expectedSequence, ttlMs), done);
  }

  last(address: ActorAddress, done: (answer: Answer<StoredCommit | null>) => void): void {
    this.#read(
      'last',
      commitSubject(address),
      () => {
        const entry = this.#store.last(this.#server.nowMs, address);
        if (entry?.kind === 'unreadable') return { ok: false, error: entry.unreadable.error };
        return { ok: true, value: entry?.kind === 'commit' ? entry.stored : null };
      },
      done,
    );
  }

  lastOfEach(filter: Partial<ActorAddress> & Pick<ActorAddress, 'shard'>, done: (answer: Answer<StoredCommit[]>) => void): void {
    this.#read(
      'lastOfEach',
      eventsStream(filter.shard),
      () => {
        const entries = this.#store.lastOfEach(this.#server.nowMs, filter);
        const unknown = entries.find((entry) => entry.kind === 'unreadable' && entry.unreadable.error.code === 'UNSUPPORTED_VERSION');
        if (unknown?.kind === 'unreadable') return { ok: false, error: unknown.unreadable.error };
        return { ok: true, value: entries.flatMap((entry) => (entry.kind === 'commit' ? [entry.stored] : [])) };
      },
      done,
    );
  }

  history(address: ActorAddress, afterVersion: number, limit: number, done: (answer: Answer<StoredCommit[]>) => void): void {
    this.#read(
      'history',
      commitSubject(address),
      () => {
        const entries = this.#store.history(this.#server.nowMs, address);
        const bad = entries.find((entry) => entry.kind === 'unreadable');
        if (bad?.kind === 'unreadable') return { ok: false, error: bad.unreadable.error };
        const commits = entries.flatMap((entry) => (entry.kind === 'commit' && entry.stored.commit.version > afterVersion ? [entry.stored] : []));
        return { ok: true, value: commits.slice(0, Math.max(0, limit)) };
      },
      done,
    );
  }

  bounds(shard: Shard, done: (answer: Answer<{ readonly firstSequence: number; readonly lastSequence: number }>) => void): void {
    this.#read('bounds', eventsStream(shard), () => ({ ok: true, value: this.#store.bounds(shard) }), done);
  }

  tail(shard: Shard, fromSequence: number, handler: SeenHandler): SimTail {
    return new SimTail(this.#server, this.#store, this.#link, shard, fromSequence, handler);
  }

  #write(label: string, address: ActorAddress, write: () => AppendOutcome, done: (outcome: AppendOutcome) => void): void {
    const answer = once(done);
    const silence = () => this.#afterSilence(() => answer({ outcome: 'unknown', error: unavailable(commitSubject(address)) }));
    const serve = () => {
      if (!this.#server.stores || !this.#store.has(address.shard)) return silence();
      const fault = this.#server.faultOfWrite();
      if (fault === 'lost_request') return silence();
      const outcome = write();
      if (fault === 'lost_answer') return silence();
      this.#link.receive(`${label} answered`, () => answer(outcome), silence);
    };
    this.#link.send(label, serve, silence);
  }

  #read<T>(label: string, what: string, read: () => Answer<T>, done: (answer: Answer<T>) => void): void {
    const answer = once(done);
    const silence = () => this.#afterSilence(() => answer({ ok: false, error: unavailable(what) }));
    const serve = () => {
      if (!this.#server.stores) return silence();
      let result: Answer<T>;
      try {
        result = read();
      } catch (thrown) {
        result = { ok: false, error: toWireError(thrown) };
      }
      this.#link.receive(`${label} answered`, () => answer(result), silence);
    };
    this.#link.send(label, serve, silence);
  }

  /** The time to answer is over, as the process counts it: from when the exchange went wrong, which is close enough. */
  #afterSilence(run: () => void): void {
    this.#server.time.after(PORT_LIMITS.answerMs * US_PER_MS, 'no answer', () => (this.#link.isOpen ? run() : undefined));
  }
}

/** A doubled message may be answered twice; the caller hears the first. */
const once = <T>(done: (value: T) => void): ((value: T) => void) => {
  let heard = false;
  return (value) => {
    if (heard) return;
    heard = true;
    done(value);
  };
};
