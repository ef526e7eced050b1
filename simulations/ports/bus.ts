/** Core messages: published to whoever listens at that moment, over each listener's own link; nobody is told when one is lost. */
import type { Random } from '../kernel/random.ts';
import type { BusServer } from './event-log.ts';
import type { Link } from './link.ts';

type Listener = { readonly link: Link; readonly handler: (payload: never) => void };

export class SimBus {
  readonly #server: BusServer;
  readonly #channels = new Map<string, Listener[]>();

  constructor(server: BusServer) {
    this.#server = server;
  }

  subscribe<T>(channel: string, link: Link, handler: (payload: T) => void): { close(): void } {
    const listener = { link, handler: handler as (payload: never) => void };
    const listeners = this.#channels.get(channel) ?? [];
    this.#channels.set(channel, [...listeners.filter(({ link: other }) => other.isOpen), listener]);
    return {
      close: () => {
        this.#channels.set(
          channel,
          (this.#channels.get(channel) ?? []).filter((other) => other !== listener),
        );
      },
    };
  }

  /** From a process. */
  publish(from: Link, channel: string, payload: unknown): void {
    from.send(channel, () => this.spread(channel, payload));
  }

  /** To one of the listeners, as to a queue group. */
  publishToOne(from: Link, channel: string, payload: unknown, random: Random): void {
    from.send(channel, () => {
      const listeners = (this.#channels.get(channel) ?? []).filter(({ link }) => link.isOpen);
      if (!this.#server.up || listeners.length === 0) return;
      const { link, handler } = random.pick(listeners);
      link.receive(channel, () => handler(payload as never));
    });
  }

  /** From the server itself: what a stream republishes. */
  spread(channel: string, payload: unknown): void {
    if (!this.#server.up) return;
    for (const { link, handler } of this.#channels.get(channel) ?? []) link.receive(channel, () => handler(payload as never));
  }
}
