/**
 * Pull requests against one consumer, one at a time, and what comes back of them, sorted: messages, and the one end of
 * each request. Memory is bounded by the size of the request. A request ends with its connection, or by silence when its
 * server died without a word.
 *
 * Does not open another request, nor mend a consumer: its two users differ in what must not be lost.
 */
import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import { API_PREFIX } from './api.ts';
import type { BusContext } from './context.ts';
import { STATUS } from './errors.ts';
import { JETSTREAM_LIMITS } from './limits.ts';

export type PulledMessage = {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly sequence: number;
  /** Counts every delivery of this consumer from 1 on, without gaps. */
  readonly deliverySequence: number;
  readonly attempt: number;
  /** By the server's clock. */
  readonly storedAtMs: number;
  /** Messages that match and were not delivered yet, after this one. */
  readonly pending: number;
  readonly ackSubject: string;
};
/** `done`: all that was asked for has come. `empty`: there is no more now. `broken`: consumer, server or connection is gone. */
export type PullEnd = 'done' | 'empty' | 'broken';
export type PullHandlers = { readonly message: (message: PulledMessage) => void; readonly end: (end: PullEnd) => void };

const NANOS_PER_MS = 1_000_000;

export class PullInbox {
  readonly #nc: NatsConnection;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #handlers: PullHandlers;
  readonly #subscription: Subscription;
  readonly #stopWatching: () => void;
  #request = 0;
  #body = '';
  #remaining = 0;
  /** Ends the request that is open; absent when none is. */
  #silence: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor({ nc, watch, inboxPrefix }: BusContext, stream: string, consumer: string, handlers: PullHandlers) {
    this.#nc = nc;
    this.#subject = `${API_PREFIX}.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#inbox = `${createInbox(inboxPrefix)}.`;
    this.#handlers = handlers;
    this.#subscription = nc.subscribe(`${this.#inbox}*`, { callback: (error, message) => (error ? this.#end('broken') : this.#onMessage(message)) });
    this.#stopWatching = watch.onDown(() => this.#end('broken'));
  }

  /** Asks for up to `batch` messages: those that are there, or, with `wait`, also those that come in the next half minute. */
  pull(batch: number, { wait }: { readonly wait: boolean }): void {
    this.#request += 1;
    this.#remaining = batch;
    this.#body = JSON.stringify(
      wait
        ? { batch, expires: JETSTREAM_LIMITS.pullExpiresMs * NANOS_PER_MS, idle_heartbeat: JETSTREAM_LIMITS.pullHeartbeatMs * NANOS_PER_MS }
        : { batch, no_wait: true },
    );
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#end('broken'), wait ? JETSTREAM_LIMITS.pullSilenceMs : JETSTREAM_LIMITS.readStallMs);
    this.#ask();
  }

  close(): void {
    this.#settle();
    this.#stopWatching();
    this.#subscription.unsubscribe();
  }

  #onMessage(message: Msg): void {
    if (message.reply?.startsWith('$JS.ACK.')) {
      this.#remaining -= 1;
      const last = this.#remaining === 0;
      this.#silence?.refresh();
      this.#handlers.message(pulled(message, message.reply));
      if (last) this.#end('done');
      return;
    }
    if (message.subject !== this.#inbox + this.#request || this.#silence === undefined) return; // the status of a request that has ended
    const code = message.headers?.code ?? 0;
    if (code === STATUS.heartbeat) this.#silence.refresh();
    else if (code === STATUS.noResponders) this.#askAgainSoon();
    else this.#end(code === STATUS.notFound || code === STATUS.timeout ? 'empty' : 'broken');
  }

  #ask(): void {
    if (!this.#nc.isClosed()) this.#nc.publish(this.#subject, this.#body, { reply: this.#inbox + this.#request });
  }

  /** A cluster's servers hear of a new consumer one after another: until the silence ends the request, nobody there means not yet. */
  #askAgainSoon(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.#ask(), JETSTREAM_LIMITS.pullAgainMs);
  }

  #end(end: PullEnd): void {
    if (this.#silence === undefined) return;
    this.#settle();
    this.#handlers.end(end);
  }

  #settle(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#again);
    this.#silence = undefined;
  }
}

/** `$JS.ACK.<stream>.<consumer>.<attempt>.<sequence>.<delivery>.<time>.<pending>`; newer servers put domain and account first. */
const pulled = ({ subject, data }: Msg, ackSubject: string): PulledMessage => {
  const tokens = ackSubject.split('.');
  const first = tokens.length > 9 ? 6 : 4;
  const number = (offset: number): number => Number(tokens[first + offset]);
  const storedAtMs = number(3) / NANOS_PER_MS;
  return { subject, data, attempt: number(0), sequence: number(1), deliverySequence: number(2), storedAtMs, pending: number(4), ackSubject };
};
