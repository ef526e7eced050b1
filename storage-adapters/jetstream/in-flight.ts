/**
 * Deliveries whose handler is running, by their place in the queue; how each of them is acknowledged.
 *
 * Acknowledgements ask for no answer. The server takes them in its own time, and would drop them when the consumer is deleted right
 * afterwards; so whoever ends asks once whether it has taken them all. One that gets lost brings the message again.
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

type Entry = { ackSubject: string; settlement: string | undefined; said: Promise<void> };

export class InFlight {
  readonly #context: BusContext;
  readonly #handler: (delivery: Delivery) => void | Promise<void>;
  /** Bounded by the consumer's `max_ack_pending`. */
  readonly #running = new Map<number, Entry>();
  #whenIdle: (() => void)[] = [];
  /** Where the newest acknowledgement went; undefined before the first. */
  #newest: string | undefined;

  constructor(context: BusContext, handler: (delivery: Delivery) => void | Promise<void>) {
    this.#context = context;
    this.#handler = handler;
  }

  deliver(message: PulledMessage): void {
    const known = this.#running.get(message.sequence);
    if (known) {
      known.ackSubject = message.ackSubject;
      if (known.settlement) this.#say(known, known.settlement); // the first one was lost
      return;
    }
    const entry: Entry = { ackSubject: message.ackSubject, settlement: undefined, said: Promise.resolve() };
    this.#running.set(message.sequence, entry);
    void this.#handle(message, entry);
  }

  /** Resolves when no handler runs and the server has taken what they said, or it is lost. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    if (this.#newest === undefined) return;
    // Taken in their order; that a delivery is worked on is answered also when it is none any more.
    await this.#context.mux.request(this.#newest, Buffer.from(IN_PROGRESS));
    this.#newest = undefined;
  }

  async #handle(message: PulledMessage, entry: Entry): Promise<void> {
    const { subject, data, sequence, attempt } = message;
    const settle = (settlement: string): void => {
      if (entry.settlement !== undefined) return;
      entry.settlement = settlement;
      this.#say(entry, settlement);
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
      await entry.said;
      this.#running.delete(sequence);
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  #say(entry: Entry, settlement: string): void {
    const address = (): string => {
      this.#newest = entry.ackSubject;
      return entry.ackSubject;
    };
    entry.said = this.#context.acknowledgements.say(address, settlement);
  }

  #extend({ ackSubject }: Entry): void {
    if (!this.#context.nc.isClosed()) this.#context.nc.publish(ackSubject, IN_PROGRESS);
  }
}
