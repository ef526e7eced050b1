/** One durable consumer of the command queue at the server: its place, what is unacknowledged, and whose turn it is. */
import type { Task } from '../kernel/heap.ts';
import { US_PER_MS } from '../kernel/virtual-time.ts';
import type { BusServer } from './event-log.ts';
import type { Link } from './link.ts';
import type { CommandStore, Packed, QueuedCommand } from './command-store.ts';

/** A command in the hands of a process. What it says reaches the server over its link, or does not. */
export type SimDelivery = {
  readonly subject: string;
  readonly data: Packed;
  readonly sequence: number;
  readonly attempt: number;
  extend(): void;
  ack(): void;
  retry(delayMs: number): void;
  discard(reason: string): void;
  /** Work has ended without a word; until then, or until it says something, the command counts as being worked on. */
  finished(): void;
};
export type SimHandler = (delivery: SimDelivery) => void;
type Pending = { attempt: number; timer: Task | null; working: Link | null };
type Attachment = { readonly link: Link; readonly handler: SimHandler };

export class QueueConsumer {
  readonly filter: string;
  readonly #server: BusServer;
  readonly #store: CommandStore;
  readonly #ackWaitMs: number;
  readonly #pending = new Map<number, Pending>();
  #again: number[] = [];
  #attachments: Attachment[] = [];
  #after = 0;
  #maxInFlight = 1;
  #fresh = false;
  #dropped = false;

  constructor(server: BusServer, store: CommandStore, filter: string, ackWaitMs: number) {
    this.#server = server;
    this.#store = store;
    this.filter = filter;
    this.#ackWaitMs = ackWaitMs;
  }

  get unacknowledged(): number {
    return this.#pending.size;
  }

  attach(link: Link, handler: SimHandler, options: { readonly fresh: boolean; readonly maxInFlight: number }): { close(): void } {
    this.#fresh = options.fresh;
    this.#maxInFlight = options.maxInFlight;
    const attachment = { link, handler };
    this.#attachments.push(attachment);
    this.pump();
    return {
      close: () => {
        this.#attachments = this.#attachments.filter((a) => a !== attachment);
      },
    };
  }

  /** Another consumer takes this one's name. */
  drop(): void {
    this.#dropped = true;
    for (const { timer } of this.#pending.values()) this.#server.time.cancel(timer);
  }

  /** The server is back: who asked for a fresh consumer makes it anew, and gets everything in its order again. */
  onServerBack(): void {
    if (this.#fresh) {
      for (const [sequence, { working, timer }] of this.#pending) {
        if (working) continue;
        this.#server.time.cancel(timer);
        this.#pending.delete(sequence);
      }
      this.#again = [];
      this.#after = 0;
    }
    this.pump();
  }

  pump(): void {
    this.#attachments = this.#attachments.filter(({ link }) => link.isOpen);
    while (!this.#dropped && this.#server.stores && this.#attachments.length > 0) {
      const message = this.#next();
      if (!message) return;
      this.#deliver(message);
    }
  }

  #next(): QueuedCommand | undefined {
    for (let sequence = this.#again.shift(); sequence !== undefined; sequence = this.#again.shift()) {
      const message = this.#store.get(this.filter, sequence);
      if (message) return message;
    }
    if (this.#pending.size >= this.#maxInFlight) return undefined;
    for (;;) {
      const message = this.#store.after(this.filter, this.#after);
      if (!message) return undefined;
      this.#after = message.sequence;
      if (!this.#pending.has(message.sequence)) return message;
    }
  }

  #deliver(message: QueuedCommand): void {
    const [attachment, ...others] = this.#attachments;
    if (!attachment) return;
    this.#attachments = [...others, attachment]; // taken in turns
    const attempt = (this.#pending.get(message.sequence)?.attempt ?? 0) + 1;
    const pending: Pending = { attempt, timer: null, working: null };
    this.#pending.set(message.sequence, pending);
    this.#arm(message.sequence, pending, this.#ackWaitMs);
    let arrived = false;
    attachment.link.receive('command', () => {
      if (arrived) return; // the client library tells copies of one delivery apart
      arrived = true;
      pending.working = attachment.link;
      attachment.handler(this.#delivery(attachment.link, pending, message, attempt));
    });
  }

  #delivery(link: Link, pending: Pending, message: QueuedCommand, attempt: number): SimDelivery {
    const { subject, data, sequence } = message;
    let said = false;
    const say = (label: string, act: () => void): void => {
      if (said) return;
      said = true;
      pending.working = null;
      link.send(label, () => {
        if (!this.#server.stores || this.#dropped) return; // said into the void: the command comes again
        act();
        this.pump();
      });
    };
    const remove = (): void => {
      this.#server.time.cancel(pending.timer);
      if (this.#pending.get(sequence)?.attempt === attempt || !this.#store.get(this.filter, sequence)) this.#pending.delete(sequence);
      else this.#dropAgain(sequence);
      this.#store.remove(this.filter, sequence);
    };
    return {
      subject,
      data,
      sequence,
      attempt,
      extend: () => (said ? undefined : link.send('extend', () => this.#arm(sequence, pending, this.#ackWaitMs))),
      ack: () => say('ack', remove),
      discard: () => say('ack', remove),
      retry: (delayMs) => say('retry', () => this.#arm(sequence, pending, delayMs)),
      finished: () => {
        pending.working = null;
      },
    };
  }

  /** Acknowledged by an earlier delivery than the newest one. */
  #dropAgain(sequence: number): void {
    this.#server.time.cancel(this.#pending.get(sequence)?.timer);
    this.#pending.delete(sequence);
  }

  /** Has it delivered again after a time, unless it is settled or worked on by then. */
  #arm(sequence: number, pending: Pending, delayMs: number): void {
    if (this.#pending.get(sequence) !== pending) return;
    this.#server.time.cancel(pending.timer);
    pending.timer = this.#server.time.after(delayMs * US_PER_MS, 'command due again', () => {
      if (this.#pending.get(sequence) !== pending) return;
      if (pending.working?.isOpen && !pending.working.cut) {
        this.#arm(sequence, pending, this.#ackWaitMs); // its process extends while it works
        return;
      }
      pending.working = null;
      this.#again.push(sequence);
      this.pump();
    });
  }
}
