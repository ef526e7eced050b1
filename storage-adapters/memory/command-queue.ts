/**
 * The work queue in memory, with the semantics of the real one: message ids, one consumer per filter, redelivery after
 * the acknowledgement time, redelivered before new. For tests and the simulation; time comes from the clock given.
 */
import type { CommandConsumer, CommandQueue, Delivery, EnqueueOutcome, WaitingCommand } from '#actors/ports/command-queue.ts';
import { DsecError, wireError } from '#bus/errors.ts';
import { COMMANDS_SUBJECTS } from '#bus/subjects.ts';
import { HEADER, headerBytes, tooLargeError } from '../commit-message.ts';
import type { SchedulingClock } from './clock.ts';
import { MemoryConsumer } from './consumer.ts';
import { MEMORY_LIMITS } from './limits.ts';
import type { WriteFault } from './event-log.ts';
import { filtersOverlap, MemoryStream, subjectMatches } from './stream.ts';

type ConsumeOptions = Parameters<CommandQueue['consume']>[0];

export type MemoryCommandQueueOptions = {
  readonly clock: SchedulingClock;
  readonly duplicateWindowMs?: number;
  readonly maxPayloadBytes?: number;
  readonly ackWaitMs?: number;
  readonly queuedCommands?: number;
  /** Asked before every command. */
  readonly fault?: (subject: string, messageId: string) => WriteFault;
};

export class MemoryCommandQueue implements CommandQueue {
  readonly #options: MemoryCommandQueueOptions;
  readonly #stream: MemoryStream;
  readonly #consumers = new Map<string, MemoryConsumer>();
  #connected = true;

  constructor(options: MemoryCommandQueueOptions) {
    this.#options = options;
    this.#stream = new MemoryStream(options.duplicateWindowMs ?? MEMORY_LIMITS.duplicateWindowMs);
  }

  /** While false, nothing is taken and nothing delivered. Back again, `fresh` consumers start over. */
  setConnected(connected: boolean): void {
    this.#connected = connected;
    for (const consumer of this.#consumers.values()) consumer.onConnection(connected);
  }

  async enqueue(subject: string, messageId: string, data: Uint8Array): Promise<EnqueueOutcome> {
    const { clock, maxPayloadBytes: limitBytes = MEMORY_LIMITS.maxPayloadBytes, queuedCommands = MEMORY_LIMITS.queuedCommands } = this.#options;
    const headers = { [HEADER.messageId]: messageId };
    const bytes = data.byteLength + headerBytes(headers);
    if (bytes > limitBytes) return { outcome: 'not_applied', error: tooLargeError(subject, bytes, limitBytes) };
    const fault = this.#options.fault?.(subject, messageId) ?? 'none';
    if (!this.#connected || fault === 'lost_request' || !COMMANDS_SUBJECTS.some((filter) => subjectMatches(filter, subject))) return unavailable(subject);
    if (this.#stream.size >= queuedCommands)
      return {
        outcome: 'unknown',
        error: wireError('OVERLOADED', `${subject}: ${queuedCommands} commands are waiting; repeat it with the same id`, { outcome: 'unknown', retry: 'same' }),
      };
    const stored = this.#stream.store(clock.now(), subject, data, headers);
    if (stored.kind === 'wrong_sequence') throw new Error('a command expects no sequence');
    for (const consumer of this.#consumers.values()) consumer.pump();
    if (fault === 'lost_answer') return unavailable(subject);
    return { outcome: 'applied', sequence: stored.sequence, duplicate: stored.kind === 'duplicate' };
  }

  async consume({ name, filter, fresh, maxInFlight }: ConsumeOptions, handler: (delivery: Delivery) => void | Promise<void>): Promise<CommandConsumer> {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(name)) throw DsecError.of('INVALID_ARGUMENT', `"${name}" cannot name a consumer: use letters, digits, "_" and "-"`);
    for (const [other, consumer] of this.#consumers)
      if (other !== name && filtersOverlap(consumer.filter, filter))
        throw DsecError.of('BUS_MISCONFIGURED', `consumer ${name}: filter ${filter} overlaps that of ${other}`);
    const existing = this.#consumers.get(name);
    if (existing && fresh) existing.drop();
    const consumer = existing && !fresh ? existing : this.#create(name, filter);
    return consumer.attach(handler, { fresh, maxInFlight, connected: this.#connected });
  }

  async waiting(subject: string, afterSequence: number, limit: number): Promise<WaitingCommand[]> {
    this.#assertConnected();
    return this.#stream
      .ofSubject(this.#options.clock.now(), subject)
      .filter(({ sequence }) => sequence > afterSequence)
      .slice(0, limit)
      .map(({ sequence, data }) => ({ subject, sequence, data }));
  }

  async lastSequence(): Promise<number> {
    this.#assertConnected();
    return this.#stream.lastSequence;
  }

  #assertConnected(): void {
    if (!this.#connected) throw DsecError.of('BUS_UNAVAILABLE', 'the queue of commands: the bus does not answer; repeat it');
  }

  #create(name: string, filter: string): MemoryConsumer {
    const { clock, ackWaitMs = MEMORY_LIMITS.ackWaitMs } = this.#options;
    const consumer = new MemoryConsumer(this.#stream, filter, clock, ackWaitMs);
    this.#consumers.set(name, consumer);
    return consumer;
  }
}

const unavailable = (subject: string): EnqueueOutcome => ({
  outcome: 'unknown',
  error: wireError('BUS_UNAVAILABLE', `${subject}: the bus does not answer; repeat it with the same id`),
});
