/** The work queue as one process reaches it: at least once, out of order after a loss, bounded in flight. */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { DsecError, toWireError, wireError } from '#bus/errors.ts';
import { COMMANDS_SUBJECTS } from '#bus/subjects.ts';
import type { EnqueueOutcome } from '#actors/ports/command-queue.ts';
import { filtersOverlap, subjectMatches } from '#adapters/memory/stream.ts';
import { US_PER_MS } from '../kernel/virtual-time.ts';
import { CommandStore, filterOf, pack, type Packed, type QueuedCommand } from './command-store.ts';
import type { Answer, BusServer } from './event-log.ts';
import { unavailable } from './event-store.ts';
import { PORT_LIMITS } from './limits.ts';
import type { Link } from './link.ts';
import { QueueConsumer, type SimHandler } from './queue-consumer.ts';

export type ConsumeOptions = { readonly name: string; readonly filter: string; readonly fresh: boolean; readonly maxInFlight: number };

/** The server's side: one stream, its consumers by name. */
export class CommandQueueServer {
  readonly store: CommandStore;
  readonly lean: boolean;
  readonly server: BusServer;
  readonly #ackWaitMs: number;
  readonly #consumers = new Map<string, QueueConsumer>();
  readonly #byFilter = new Map<string, QueueConsumer>();

  constructor(server: BusServer, options: { readonly duplicateWindowMs?: number; readonly ackWaitMs?: number; readonly lean?: boolean } = {}) {
    this.server = server;
    this.lean = options.lean ?? false;
    this.store = new CommandStore(options);
    this.#ackWaitMs = options.ackWaitMs ?? PORT_LIMITS.ackWaitMs;
  }

  add(subject: string, messageId: string, data: Packed): EnqueueOutcome | null {
    if (!COMMANDS_SUBJECTS.some((filter) => subjectMatches(filter, subject))) return null;
    const stored = this.store.add(this.server.nowMs, subject, messageId, data);
    if (stored.kind === 'refused') return { outcome: 'not_applied', error: stored.error };
    if (stored.kind === 'full') {
      const message = `${subject}: ${PORT_LIMITS.queuedCommands} commands are waiting; repeat it with the same id`;
      return { outcome: 'unknown', error: wireError('OVERLOADED', message, { outcome: 'unknown', retry: 'same' }) };
    }
    this.#byFilter.get(filterOf(subject))?.pump();
    return { outcome: 'applied', sequence: stored.sequence, duplicate: stored.kind === 'duplicate' };
  }

  consumer({ name, filter, fresh }: ConsumeOptions): QueueConsumer {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(name)) throw DsecError.of('INVALID_ARGUMENT', `"${name}" cannot name a consumer: use letters, digits, "_" and "-"`);
    for (const [other, consumer] of this.#consumers)
      if (other !== name && filtersOverlap(consumer.filter, filter))
        throw DsecError.of('BUS_MISCONFIGURED', `consumer ${name}: filter ${filter} overlaps that of ${other}`);
    const existing = this.#consumers.get(name);
    if (existing && !fresh) return existing;
    existing?.drop();
    const made = new QueueConsumer(this.server, this.store, filter, this.#ackWaitMs);
    this.#consumers.set(name, made);
    this.#byFilter.set(filter, made);
    return made;
  }

  /** After an outage or an election. */
  serverBack(): void {
    for (const consumer of this.#consumers.values()) consumer.onServerBack();
  }
}

export class SimCommandQueue {
  readonly #queue: CommandQueueServer;
  readonly #link: Link;

  constructor(queue: CommandQueueServer, link: Link) {
    this.#queue = queue;
    this.#link = link;
  }

  enqueue(subject: string, messageId: string, data: Packed, done: (outcome: EnqueueOutcome) => void): void {
    const { server } = this.#queue;
    let heard = false;
    const answer = (outcome: EnqueueOutcome) => {
      if (heard) return;
      heard = true;
      done(outcome);
    };
    const silence = () => {
      server.time.after(PORT_LIMITS.answerMs * US_PER_MS, 'no answer', () =>
        this.#link.isOpen ? answer({ outcome: 'unknown', error: unavailable(subject) }) : undefined,
      );
    };
    const serve = () => {
      if (!server.stores) return silence();
      const fault = server.faultOfWrite();
      if (fault === 'lost_request') return silence();
      const outcome = this.#queue.add(subject, messageId, data);
      if (fault === 'lost_answer' || !outcome) return silence();
      this.#link.receive('enqueue answered', () => answer(outcome), silence);
    };
    this.#link.send('enqueue', serve, silence);
  }

  /** A command of the platform's own, in the form in which the queue keeps them. */
  send(subject: string, envelope: CommandEnvelope, done: (outcome: EnqueueOutcome) => void): void {
    this.enqueue(subject, envelope.id, pack(envelope, this.#queue.lean), done);
  }

  lastSequence(done: (answer: Answer<number>) => void): void {
    this.#ask('lastSequence', () => this.#queue.store.lastSequence, done);
  }

  waiting(subject: string, afterSequence: number, limit: number, done: (answer: Answer<QueuedCommand[]>) => void): void {
    this.#ask('waiting', () => this.#queue.store.ofSubject(subject, afterSequence, limit), done);
  }

  /** Delivers what matches, oldest first. Answers with an error where the server refuses the consumer or does not answer. */
  consume(options: ConsumeOptions, handler: SimHandler, done: (answer: Answer<{ close(): void }>) => void): void {
    this.#ask('consume', () => this.#queue.consumer(options).attach(this.#link, handler, options), done);
  }

  #ask<T>(what: string, serve: () => T, done: (answer: Answer<T>) => void): void {
    const { server } = this.#queue;
    let heard = false;
    const hear = (answer: Answer<T>) => {
      if (heard || !this.#link.isOpen) return;
      heard = true;
      done(answer);
    };
    const silence = () => void server.time.after(PORT_LIMITS.answerMs * US_PER_MS, 'no answer', () => hear({ ok: false, error: unavailable(what) }));
    let served = false;
    const arrive = () => {
      if (served) return; // a copy of a question that the server has answered
      if (!server.stores) return silence();
      served = true;
      let answer: Answer<T>;
      try {
        answer = { ok: true, value: serve() };
      } catch (thrown) {
        answer = { ok: false, error: toWireError(thrown) };
      }
      this.#link.receive(`${what} answered`, () => hear(answer), silence);
    };
    this.#link.send(what, arrive, silence);
  }
}
