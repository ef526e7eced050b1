/**
 * Requests over one inbox subscription of our own: no subscription, timer or iterator per request, which is what makes
 * tens of thousands of publishes per second possible. Bounded; every request ends, at the latest after its time-out.
 *
 * Does not interpret answers and never repeats a request: whether that is safe only the caller knows.
 */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import type { ConnectionWatch } from './connection.ts';
import { type NoAnswer, STATUS } from './errors.ts';
import { JETSTREAM_LIMITS } from './limits.ts';

export type MuxAnswer = { readonly kind: 'answer'; readonly message: Msg } | { readonly kind: 'none'; readonly why: NoAnswer };
export type MuxOptions = { readonly inboxPrefix?: string | undefined; readonly timeoutMs?: number | undefined; readonly maxOutstanding?: number | undefined };

type Pending = { readonly settle: (answer: MuxAnswer) => void; readonly deadlineMs: number };

export class Mux {
  readonly #nc: NatsConnection;
  readonly #watch: ConnectionWatch;
  readonly #inbox: string;
  readonly #timeoutMs: number;
  readonly #maxOutstanding: number;
  readonly #subscription: Subscription;
  readonly #stopWatching: () => void;
  /** In order of their deadlines, because all have the same time-out. */
  readonly #pending = new Map<string, Pending>();
  #onRequest: () => void = () => {};
  #counter = 0;
  #sweep: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(nc: NatsConnection, watch: ConnectionWatch, options: MuxOptions = {}) {
    this.#nc = nc;
    this.#watch = watch;
    this.#inbox = `${createInbox(options.inboxPrefix)}.`;
    this.#timeoutMs = options.timeoutMs ?? JETSTREAM_LIMITS.requestTimeoutMs;
    this.#maxOutstanding = options.maxOutstanding ?? JETSTREAM_LIMITS.outstandingRequests;
    this.#subscription = nc.subscribe(`${this.#inbox}*`, { callback: (error, message) => (error ? this.#failAll('disconnected') : this.#onMessage(message)) });
    this.#stopWatching = watch.onDown(() => this.#failAll(watch.isClosed ? 'closed' : 'disconnected'));
  }

  get outstanding(): number {
    return this.#pending.size;
  }

  /** Calls `listener` after each request that was sent, in the same turn: what it publishes leaves in the same write. One listener. */
  onRequest(listener: () => void): void {
    this.#onRequest = listener;
  }

  request(subject: string, data: Uint8Array, headers?: MsgHdrs): Promise<MuxAnswer> {
    const refusal = this.#refusal();
    if (refusal) return Promise.resolve({ kind: 'none', why: refusal });
    return new Promise((settle) => {
      this.#counter += 1;
      const token = this.#counter.toString(36);
      this.#pending.set(token, { settle, deadlineMs: performance.now() + this.#timeoutMs });
      try {
        this.#nc.publish(subject, data, headers ? { reply: this.#inbox + token, headers } : { reply: this.#inbox + token });
      } catch (thrown) {
        this.#pending.delete(token);
        if (!this.#nc.isClosed()) throw thrown; // a malformed subject or header: a programmer's error
        settle({ kind: 'none', why: 'closed' });
        return;
      }
      this.#sweep ??= setTimeout(() => this.#expire(), this.#timeoutMs);
      this.#onRequest();
    });
  }

  close(): void {
    this.#closed = true;
    this.#stopWatching();
    this.#subscription.unsubscribe();
    this.#failAll('closed');
  }

  #refusal(): NoAnswer | undefined {
    if (this.#closed || this.#watch.isClosed) return 'closed';
    if (!this.#watch.isConnected) return 'disconnected';
    return this.#pending.size >= this.#maxOutstanding ? 'overloaded' : undefined;
  }

  #onMessage(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length);
    const pending = this.#pending.get(token);
    if (!pending) return; // answered after its time-out
    this.#pending.delete(token);
    const nobody = message.data.length === 0 && message.headers?.code === STATUS.noResponders;
    pending.settle(nobody ? { kind: 'none', why: 'no_responders' } : { kind: 'answer', message });
  }

  #expire(): void {
    this.#sweep = undefined;
    const now = performance.now();
    for (const [token, { settle, deadlineMs }] of this.#pending) {
      if (deadlineMs > now) {
        this.#sweep = setTimeout(() => this.#expire(), deadlineMs - now);
        return;
      }
      this.#pending.delete(token);
      settle({ kind: 'none', why: 'timeout' });
    }
  }

  #failAll(why: NoAnswer): void {
    clearTimeout(this.#sweep);
    this.#sweep = undefined;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { settle } of pending) settle({ kind: 'none', why });
  }
}
