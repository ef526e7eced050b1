/** Deliveries whose handler is running, by their place in the queue; how each of them is acknowledged. */
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

type Entry = { ackSubject: string; settlement: string | undefined };

export class InFlight {
  readonly #context: BusContext;
  readonly #handler: (delivery: Delivery) => void | Promise<void>;
  /** Bounded by the consumer's `max_ack_pending`. */
  readonly #running = new Map<number, Entry>();
  #whenIdle: (() => void)[] = [];

  constructor(context: BusContext, handler: (delivery: Delivery) => void | Promise<void>) {
    this.#context = context;
    this.#handler = handler;
  }

  deliver(message: PulledMessage): void {
    const known = this.#running.get(message.sequence);
    if (known) {
      known.ackSubject = message.ackSubject;
      if (known.settlement) this.#send(known, known.settlement); // the first one was lost
      return;
    }
    const entry: Entry = { ackSubject: message.ackSubject, settlement: undefined };
    this.#running.set(message.sequence, entry);
    void this.#handle(message, entry);
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  async #handle(message: PulledMessage, entry: Entry): Promise<void> {
    const { subject, data, sequence, attempt } = message;
    const settle = (settlement: string): void => {
      if (entry.settlement !== undefined) return;
      entry.settlement = settlement;
      this.#send(entry, settlement);
    };
    try {
      await this.#handler({
        subject,
        data,
        sequence,
        attempt,
        extend: () => (entry.settlement === undefined ? this.#send(entry, IN_PROGRESS) : undefined),
        ack: () => settle(ACK),
        retry: (delayMs) => settle(retryIn(delayMs)),
        discard: (reason) => settle(terminate(reason)),
      });
    } catch (thrown) {
      const { code, message: told } = toWireError(thrown);
      this.#context.report({ event: 'command_handler_failed', subject, sequence, attempt, code, message: told });
      settle(retryIn(JETSTREAM_LIMITS.failedHandlerRetryMs));
    } finally {
      this.#running.delete(sequence);
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  /** Fire and forget: a settlement that gets lost brings the message again. */
  #send(entry: Entry, payload: string): void {
    if (!this.#context.nc.isClosed()) this.#context.nc.publish(entry.ackSubject, payload);
  }
}
