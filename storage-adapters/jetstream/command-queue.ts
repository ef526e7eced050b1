/** The work queue of commands on JetStream: one stream, message ids, one durable consumer per filter. */
import type { CommandConsumer, CommandQueue, Delivery, EnqueueOutcome, WaitingCommand } from '#actors/ports/command-queue.ts';
import { DsecError } from '#bus/errors.ts';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import { conflictError, HEADER } from '../commit-message.ts';
import type { BusContext } from './context.ts';
import type { Publisher } from './publisher.ts';
import type { Reader } from './reader.ts';
import { QueueConsumer } from './queue-consumer.ts';

type ConsumeOptions = Parameters<CommandQueue['consume']>[0];

/** What the server takes as a consumer's name; a dot would be a level of its subject. */
const CONSUMER_NAME = /^[A-Za-z0-9_-]{1,128}$/;

export class JetStreamCommandQueue implements CommandQueue {
  readonly #context: BusContext;
  readonly #publisher: Publisher;
  readonly #reader: Reader;
  readonly #ackWaitMs: number;

  constructor(context: BusContext, publisher: Publisher, reader: Reader, ackWaitMs: number) {
    this.#context = context;
    this.#reader = reader;
    this.#publisher = publisher;
    this.#ackWaitMs = ackWaitMs;
  }

  async enqueue(subject: string, messageId: string, data: Uint8Array): Promise<EnqueueOutcome> {
    const published = await this.#publisher.publish(subject, data, { [HEADER.messageId]: messageId });
    switch (published.outcome) {
      case 'stored':
        return { outcome: 'applied', sequence: published.sequence, duplicate: published.duplicate };
      case 'unknown':
        return published;
      case 'rejected':
        return { outcome: 'not_applied', error: published.error };
      case 'conflict': // nothing was expected, so nothing can differ from it
        return { outcome: 'not_applied', error: conflictError(subject, 0) };
    }
  }

  async consume(options: ConsumeOptions, handler: (delivery: Delivery) => void | Promise<void>): Promise<CommandConsumer> {
    if (!CONSUMER_NAME.test(options.name)) throw DsecError.of('INVALID_ARGUMENT', `"${options.name}" cannot name a consumer: use letters, digits, "_" and "-"`);
    const consumer = new QueueConsumer(this.#context, { ...options, ackWaitMs: this.#ackWaitMs }, handler);
    await consumer.open();
    return consumer;
  }

  async waiting(subject: string, afterSequence: number, limit: number): Promise<WaitingCommand[]> {
    const found: WaitingCommand[] = [];
    for (let after = afterSequence; found.length < limit; ) {
      const message = await this.#reader.nextAfter(COMMANDS_STREAM, subject, after);
      if (!message) break;
      found.push({ subject: message.subject, sequence: message.sequence, data: message.data });
      after = message.sequence;
    }
    return found;
  }

  async lastSequence(): Promise<number> {
    return (await this.#context.api.streamInfo(COMMANDS_STREAM)).state.last_seq;
  }
}
