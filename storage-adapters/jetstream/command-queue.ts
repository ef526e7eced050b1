/** The work queue of commands on JetStream: one stream, message ids, one durable consumer per filter. */
import type { CommandConsumer, CommandQueue, Delivery, EnqueueOutcome } from '#actors/ports/command-queue.ts';
import { DsecError } from '#bus/errors.ts';
import { conflictError, HEADER } from '../commit-message.ts';
import type { BusContext } from './context.ts';
import type { Publisher } from './publisher.ts';
import { QueueConsumer } from './queue-consumer.ts';

type ConsumeOptions = Parameters<CommandQueue['consume']>[0];

/** What the server takes as a consumer's name; a dot would be a level of its subject. */
const CONSUMER_NAME = /^[A-Za-z0-9_-]{1,128}$/;

export class JetStreamCommandQueue implements CommandQueue {
  readonly #context: BusContext;
  readonly #publisher: Publisher;
  readonly #ackWaitMs: number;

  constructor(context: BusContext, publisher: Publisher, ackWaitMs: number) {
    this.#context = context;
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
}
