/**
 * Deliveries whose handler is running, by their place in the queue; how each of them is acknowledged.
 *
 * Acknowledgements ask for an answer: the server takes plain ones in its own time, and would drop them when the consumer is
 * deleted right afterwards. One that gets lost all the same brings the message again.
 */
import type { Delivery } from '#actors/ports/command-queue.ts';
import { toWireError } from '#bus/errors.ts';
import type { BusContext } from './context.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import type { PulledMessage } from './pull.ts';

const NANOS_PER_MS = 1_000_000;
const ACK = '+ACK';
const IN_PROGRESS = '+WPI';
const retryIn = (delayMs: number): string => `-NAK {"delay": ${Math.max(1, Math.round(delayMs)) * NANOS_PER_MS}}`;
/** The reason goes to an advisory, for people. */
const terminate = (reason: string): string => `+TERM ${reason.replace(/\s+/g, ' ').slice(0, 200)}`;

type Entry = { ackSubject: string; settlement: string | undefined; confirmed: Promise<unknown> };

export class InFlight {
  readonly #context: BusContext;
  readonly #handler: (delivery: Delivery) => void | Promise<void>;
  /** Bounded by the consumer's `max_ack_pending`. */
  readonly #running = new Map<number, Entry>();
  #whenIdle: (() => void)[] = [];
  readonly #due: (() => Promise<void>)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(context: BusContext, handler: (delivery: Delivery) => void | Promise<void>) {
    this.#context = context;
    this.#handler = handler;
  }

  deliver(message: PulledMessage): void {
    const known = this.#running.get(message.sequence);
    if (known) {
      known.ackSubject = message.ackSubject;
      if (known.settlement) this.#confirm(known, known.settlement); // the first one was lost
      return;
    }
    const entry: Entry = { ackSubject: message.ackSubject, settlement: undefined, confirmed: Promise.resolve() };
    this.#running.set(message.sequence, entry);
    void this.#handle(message, entry);
  }

  /** Resolves when no handler runs and what they said has arrived or is lost. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  async #handle(message: PulledMessage, entry: Entry): Promise<void> {
    const { subject, data, sequence, attempt } = message;
    const settle = (settlement: string): void => {
      if (entry.settlement !== undefined) return;
      entry.settlement = settlement;
      this.#confirm(entry, settlement);
    };
    try {
      await this.#handler({
        subject,
        data,
        sequence,
        attempt,
        extend: () => (entry.settlement === undefined ? this.#extend(entry) : undefined),
        ack: () => settle(ACK),
        retry: (delayMs) => settle(retryIn(delayMs)),
        discard: (reason) => settle(terminate(reason)),
      });
    } catch (thrown) {
      const { code, message: told } = toWireError(thrown);
      this.#context.report({ event: 'command_handler_failed', subject, sequence, attempt, code, message: told });
      settle(retryIn(JETSTREAM_LIMITS.failedHandlerRetryMs));
    } finally {
      await this.#settled(entry);
      this.#running.delete(sequence);
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  /** Nobody waits for an acknowledgement, so those of a moment travel together, behind what somebody does wait for. */
  #confirm(entry: Entry, settlement: string): void {
    entry.confirmed = new Promise((resolve, reject) => {
      this.#due.push(() => this.#context.mux.request(entry.ackSubject, Buffer.from(settlement)).then(resolve, reject));
    });
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const send of this.#due.splice(0)) void send();
    }, JETSTREAM_LIMITS.ackLingerMs);
  }

  /** A redelivery meanwhile starts another confirmation; the last one counts. */
  async #settled(entry: Entry): Promise<void> {
    for (let seen: Promise<unknown> | undefined; seen !== entry.confirmed; ) {
      seen = entry.confirmed;
      await seen;
    }
  }

  #extend({ ackSubject }: Entry): void {
    if (!this.#context.nc.isClosed()) this.#context.nc.publish(ackSubject, IN_PROGRESS);
  }
}
