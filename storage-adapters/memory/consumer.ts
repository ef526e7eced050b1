/** One consumer of the in-memory work queue: its place, what is unacknowledged, and whose turn it is. */
import type { CommandConsumer, Delivery } from '#actors/ports/command-queue.ts';
import type { SchedulingClock } from './clock.ts';
import { MEMORY_LIMITS } from './limits.ts';
import { type MemoryStream, subjectMatches } from './stream.ts';

type Handler = (delivery: Delivery) => void | Promise<void>;
type Pending = { attempt: number; cancelTimer: () => void; running: boolean };
type Attachment = { readonly handler: Handler; running: number; closed: boolean; readonly whenIdle: (() => void)[] };

export class MemoryConsumer {
  readonly filter: string;
  readonly #stream: MemoryStream;
  readonly #clock: SchedulingClock;
  readonly #ackWaitMs: number;
  /** Delivered and not acknowledged, by sequence. */
  readonly #pending = new Map<number, Pending>();
  /** Waiting to be delivered again, oldest request first; these go before new ones. */
  #again: number[] = [];
  #attachments: Attachment[] = [];
  #nextSequence = 1;
  #maxInFlight = 1;
  #fresh = false;
  #connected = true;
  #scheduled = false;
  #dropped = false;

  constructor(stream: MemoryStream, filter: string, clock: SchedulingClock, ackWaitMs: number) {
    this.#stream = stream;
    this.filter = filter;
    this.#clock = clock;
    this.#ackWaitMs = ackWaitMs;
  }

  attach(handler: Handler, options: { fresh: boolean; maxInFlight: number; connected: boolean }): CommandConsumer {
    this.#fresh = options.fresh;
    this.#maxInFlight = options.maxInFlight;
    this.#connected = options.connected;
    const attachment: Attachment = { handler, running: 0, closed: false, whenIdle: [] };
    this.#attachments.push(attachment);
    this.pump();
    return {
      close: async () => {
        attachment.closed = true;
        this.#attachments = this.#attachments.filter((a) => a !== attachment);
        if (attachment.running > 0) await new Promise<void>((resolve) => attachment.whenIdle.push(resolve));
      },
    };
  }

  /** Another consumer takes this one's name: nothing is delivered any more. */
  drop(): void {
    this.#dropped = true;
    for (const { cancelTimer } of this.#pending.values()) cancelTimer();
  }

  onConnection(connected: boolean): void {
    this.#connected = connected;
    if (connected && this.#fresh) this.#startOver();
    this.pump();
  }

  /** Delivers what may be delivered, in a task of its own: never inside the caller. */
  pump(): void {
    if (this.#scheduled || this.#dropped) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      while (this.#deliverOne());
    });
  }

  /** What is being worked on stays with its handler; everything else comes again, in its order. */
  #startOver(): void {
    for (const [sequence, { running, cancelTimer }] of this.#pending) {
      if (running) continue;
      cancelTimer();
      this.#pending.delete(sequence);
    }
    this.#again = [];
    this.#nextSequence = 1;
  }

  #deliverOne(): boolean {
    const attachment = this.#attachments[0];
    if (!attachment || !this.#connected || this.#dropped) return false;
    const sequence = this.#next();
    const message = sequence === undefined ? null : this.#stream.from(this.#clock.now(), sequence);
    if (!message || message.sequence !== sequence) return sequence !== undefined;
    this.#attachments = [...this.#attachments.slice(1), attachment]; // taken in turns
    const attempt = (this.#pending.get(sequence)?.attempt ?? 0) + 1;
    const pending: Pending = { attempt, cancelTimer: () => {}, running: true };
    this.#pending.set(sequence, pending);
    this.#arm(sequence, pending, this.#ackWaitMs);
    void this.#handle(attachment, pending, { subject: message.subject, data: message.data, sequence, attempt });
    return true;
  }

  /** Sequence of what is to be delivered next; undefined when there is nothing or too much is unacknowledged. */
  #next(): number | undefined {
    const again = this.#again.shift();
    if (again !== undefined) return again;
    if (this.#pending.size >= this.#maxInFlight) return undefined;
    for (;;) {
      const message = this.#stream.from(this.#clock.now(), this.#nextSequence);
      if (!message) return undefined;
      this.#nextSequence = message.sequence + 1;
      if (subjectMatches(this.filter, message.subject) && !this.#pending.has(message.sequence)) return message.sequence;
    }
  }

  async #handle(attachment: Attachment, pending: Pending, message: Pick<Delivery, 'subject' | 'data' | 'sequence' | 'attempt'>): Promise<void> {
    attachment.running += 1;
    const delivery = this.#delivery(pending, message);
    try {
      await attachment.handler(delivery);
    } catch {
      delivery.retry(MEMORY_LIMITS.failedHandlerRetryMs);
    } finally {
      pending.running = false;
      attachment.running -= 1;
      if (attachment.running === 0) for (const resolve of attachment.whenIdle.splice(0)) resolve();
    }
  }

  #delivery(pending: Pending, message: Pick<Delivery, 'subject' | 'data' | 'sequence' | 'attempt'>): Delivery {
    const { sequence } = message;
    let settled = false;
    const once = (settle: () => void): void => {
      if (settled || !this.#connected) return; // said into the void: the message comes again
      settled = true;
      settle();
      this.pump();
    };
    const remove = (): void => {
      pending.cancelTimer();
      this.#pending.delete(sequence);
      this.#stream.remove(sequence);
    };
    return {
      ...message,
      extend: () => (settled || !this.#connected ? undefined : this.#arm(sequence, pending, this.#ackWaitMs)),
      ack: () => once(remove),
      discard: () => once(remove),
      retry: (delayMs) => once(() => this.#arm(sequence, pending, delayMs)),
    };
  }

  /** Has the message delivered again after a time, unless it is settled or still worked on by then. */
  #arm(sequence: number, pending: Pending, delayMs: number): void {
    pending.cancelTimer();
    pending.cancelTimer = this.#clock.schedule(delayMs, () => {
      if (this.#pending.get(sequence) !== pending) return;
      if (pending.running) {
        this.#arm(sequence, pending, this.#ackWaitMs);
        return;
      }
      this.#again.push(sequence);
      this.pump();
    });
  }
}
