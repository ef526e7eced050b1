/**
 * Takes commands from COMMANDS and gives them to a handler, for as long as its owner wants.
 *
 * The server holds at most `maxInFlight` unacknowledged deliveries for the consumer; one pull request stays open all the
 * time. Whenever anything is doubtful (lost connection, silence, consumer gone) everything is set up again. A `fresh`
 * consumer belongs to this process alone, so it is made anew each time: what was delivered into the void comes back first
 * and in order. What is still being worked on comes back too, and is not handed out twice: it only gets its new way to
 * acknowledge.
 */
import type { CommandConsumer, Delivery } from '#actors/ports/command-queue.ts';
import { toWireError } from '#bus/errors.ts';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import { Backoff } from './backoff.ts';
import type { BusContext } from './context.ts';
import { InFlight } from './in-flight.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import { PullInbox } from './pull.ts';

export type QueueConsumerOptions = {
  readonly name: string;
  readonly filter: string;
  readonly fresh: boolean;
  readonly maxInFlight: number;
  readonly ackWaitMs: number;
};

const NANOS_PER_MS = 1_000_000;

export class QueueConsumer implements CommandConsumer {
  readonly #context: BusContext;
  readonly #options: QueueConsumerOptions;
  readonly #inFlight: InFlight;
  readonly #backoff: Backoff;
  #stop: () => void = () => {};
  #ended: Promise<void> = Promise.resolve();
  #closing = false;

  constructor(context: BusContext, options: QueueConsumerOptions, handler: (delivery: Delivery) => void | Promise<void>) {
    this.#context = context;
    this.#options = options;
    this.#inFlight = new InFlight(context, handler);
    this.#backoff = new Backoff(context.watch);
  }

  /** The first time a failure is the caller's to know; later ones are mended here. */
  async open(): Promise<void> {
    await this.#prepare();
    this.#ended = this.#run();
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#backoff.cancel();
    this.#stop();
    await this.#ended;
    await this.#inFlight.idle();
  }

  async #run(): Promise<void> {
    await this.#session();
    while (!this.#closing && !this.#context.watch.isClosed) {
      await this.#backoff.wait();
      if (this.#closing) return;
      try {
        await this.#prepare();
        this.#context.report({ event: 'consumer_reopened', consumer: this.#options.name });
        await this.#session();
      } catch (thrown) {
        const { code, message } = toWireError(thrown);
        this.#context.report({ event: 'consumer_interrupted', consumer: this.#options.name, code, message });
      }
    }
  }

  async #prepare(): Promise<void> {
    const { api } = this.#context;
    const { name, filter, fresh, maxInFlight, ackWaitMs } = this.#options;
    if (fresh) await api.deleteConsumer(COMMANDS_STREAM, name);
    await api.createConsumer(COMMANDS_STREAM, {
      name,
      durable_name: name,
      filter_subject: filter,
      deliver_policy: 'all',
      ack_policy: 'explicit',
      ack_wait: ackWaitMs * NANOS_PER_MS,
      max_ack_pending: maxInFlight,
      max_deliver: -1,
    });
  }

  /** Resolves when consumer, server or connection is gone, or when this is closed. */
  #session(): Promise<void> {
    return new Promise((resolve) => {
      const inbox = new PullInbox(this.#context, COMMANDS_STREAM, this.#options.name, {
        message: (message) => {
          this.#backoff.reset();
          this.#inFlight.deliver(message);
        },
        end: (end) => (end === 'broken' ? this.#stop() : inbox.pull(JETSTREAM_LIMITS.queueBatch, { wait: true })),
      });
      this.#stop = () => {
        inbox.close();
        resolve();
      };
      if (this.#closing) this.#stop();
      else inbox.pull(JETSTREAM_LIMITS.queueBatch, { wait: true });
    });
  }
}
