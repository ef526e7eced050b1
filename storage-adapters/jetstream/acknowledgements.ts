/**
 * What handlers say of their deliveries, on its way to the server. Nobody waits for it, so it leaves with the next message that this
 * connection sends for somebody who does, in the same write, or after a moment by itself; and it asks for no answer. One that gets
 * lost brings its delivery again, which adds nothing.
 *
 * Does not decide what is said, nor remember what was: that is `in-flight.ts`.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { ConnectionWatch } from './connection.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import type { Mux } from './mux.ts';

type Due = { readonly subject: () => string; readonly said: string; readonly gone: () => void };

export class Acknowledgements {
  readonly #nc: NatsConnection;
  readonly #watch: ConnectionWatch;
  /** Bounded by the deliveries in flight of all consumers of the connection. */
  #due: Due[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(nc: NatsConnection, watch: ConnectionWatch, mux: Pick<Mux, 'onRequest'>) {
    this.#nc = nc;
    this.#watch = watch;
    mux.onRequest(() => this.flush());
  }

  /** `subject` is looked at when it leaves: a redelivery meanwhile has another. Resolves when it has left, or never will. */
  say(subject: () => string, said: string): Promise<void> {
    return new Promise((gone) => {
      this.#due.push({ subject, said, gone });
      this.#timer ??= setTimeout(() => this.flush(), JETSTREAM_LIMITS.ackLingerMs);
    });
  }

  /** What is published while the connection is down would be thrown away: then it is dropped here. */
  flush(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const due = this.#due;
    this.#due = [];
    const { isConnected } = this.#watch;
    for (const { subject, said, gone } of due) {
      if (isConnected) this.#nc.publish(subject(), said);
      gone();
    }
  }
}
