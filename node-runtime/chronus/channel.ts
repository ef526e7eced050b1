/**
 * The way to a sandbox's Aether: connected when needed, reconnected once when it breaks, closed for good when nobody listens
 * any more. A closed channel means a failed sandbox (@paper §3.3), so "gone" is never taken back.
 */
import { DsecError } from '#bus/errors.ts';
import { AetherClient } from '../aether/client.ts';
import type { AetherEvents } from '../aether/client.ts';

export type ChannelEvents = Omit<AetherEvents, 'close'> & {
  /** A new connection after one broke: what was said in between has to be asked for. */
  reconnected(): void;
  /** Nobody listens any more. Once. */
  gone(): void;
};

export class Channel {
  readonly #path: string;
  readonly #events: ChannelEvents;
  #client: AetherClient | undefined;
  #connecting: Promise<AetherClient | undefined> | undefined;
  #state: 'usable' | 'gone' | 'closed' = 'usable';
  #isEnding = false;

  constructor(socketPath: string, events: ChannelEvents) {
    this.#path = socketPath;
    this.#events = events;
  }

  get gone(): boolean {
    return this.#state === 'gone';
  }

  /** Undefined when the agent is gone. Throws EDGE_UNAVAILABLE after `close`. */
  async client(): Promise<AetherClient | undefined> {
    if (this.#client?.open) return this.#client;
    if (this.#state === 'gone') return undefined;
    if (this.#state === 'closed') throw closedError();
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** The agent is being ended: a connection that breaks from now on is nothing to look into, `end` follows. */
  ending(): void {
    this.#isEnding = true;
  }

  /** The agent is known to be gone, before its socket says so. */
  end(): void {
    this.#onGone();
    this.#client?.close();
  }

  close(): void {
    if (this.#state === 'usable') this.#state = 'closed';
    this.#client?.close();
  }

  async #connect(): Promise<AetherClient | undefined> {
    const { progress, exit, startFailed } = this.#events;
    const client = await AetherClient.connect(this.#path, { progress, exit, startFailed, close: (error) => this.#onClose(error) });
    if (this.#state === 'closed') {
      client?.close();
      throw closedError();
    }
    if (client) this.#client = client;
    else this.#onGone();
    return client;
  }

  #onClose(error: Error | undefined): void {
    this.#client = undefined;
    if (error === undefined || this.#state !== 'usable' || this.#isEnding) return;
    void this.client().then(
      (client) => client && this.#events.reconnected(),
      // neither there nor refusing: the next call tries again and tells its caller
      () => undefined,
    );
  }

  #onGone(): void {
    if (this.#state !== 'usable') return;
    this.#state = 'gone';
    this.#events.gone();
  }
}

export const closedError = (): DsecError => DsecError.of('EDGE_UNAVAILABLE', 'this node stops serving the sandbox for now; repeat the call with the same key');
