/**
 * What this adapter needs of a connection: options that survive any outage, the server's version, and whether it is
 * connected right now.
 *
 * While a connection is down the client throws away what was published meanwhile. So nothing is sent then, and what was
 * sent before and not answered is `unknown` at once instead of after its time-out.
 */
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';

/** Fast ingest (`allow_batched`) and consumer reset came with 2.14; the client's options are dropped silently before. */
export const MINIMUM_SERVER = { major: 2, minor: 14 } as const;

export const busConnectionOptions = (servers: string | string[], name: string): NodeConnectionOptions => ({
  servers,
  name,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  reconnectJitter: 100,
  /** A cut without RST is noticed after two of these, and a dial into nothing ends after `timeout`. */
  pingInterval: 3_000,
  maxPingOut: 2,
  timeout: 3_000,
  /** While an auth callout is down a good token looks bad; the connection must not give up for that. */
  ignoreAuthErrorAbort: true,
  // Every server is named. Told of the others anew at each attempt, the library would never come to the end of its list, and a key that
  // the bus does not know would be shown to a cluster again and again, for ever.
  ignoreClusterUpdates: true,
});

export const assertServerVersion = (nc: NatsConnection): void => {
  const version = nc.info?.version ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const { major: needMajor, minor: needMinor } = MINIMUM_SERVER;
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  throw DsecError.of('BUS_TOO_OLD', `nats-server ${version} at ${nc.getServer()} is older than ${needMajor}.${needMinor}; upgrade it`, {
    details: { version, minimum: `${needMajor}.${needMinor}` },
  });
};

type Listener = () => void;

/** Follows one connection's status; everything that must know of an outage listens here. */
export class ConnectionWatch {
  readonly #nc: NatsConnection;
  readonly #down = new Set<Listener>();
  readonly #up = new Set<Listener>();
  #connected = true;
  #closed: boolean;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
    this.#closed = nc.isClosed();
    void this.#follow();
  }

  get isConnected(): boolean {
    return this.#connected && !this.#closed;
  }

  get isClosed(): boolean {
    return this.#closed || this.#nc.isClosed();
  }

  /** Calls `listener` at every loss of the connection, its closing included. Returns the function that ends this. */
  onDown(listener: Listener): () => void {
    this.#down.add(listener);
    return () => void this.#down.delete(listener);
  }

  /** Resolves at once while connected, else after the next reconnect or the end of the connection. */
  async settled(): Promise<void> {
    if (this.isConnected || this.isClosed) return;
    await new Promise<void>((resolve) => this.#up.add(resolve));
  }

  async #follow(): Promise<void> {
    for await (const status of this.#nc.status()) {
      if (status.type === 'disconnect') this.#lost();
      else if (status.type === 'reconnect') this.#regained();
      else if (status.type === 'close') break;
    }
    this.#closed = true;
    this.#lost();
    this.#regained();
  }

  #lost(): void {
    this.#connected = false;
    for (const listener of [...this.#down]) listener();
  }

  #regained(): void {
    this.#connected = true;
    const waiting = [...this.#up];
    this.#up.clear();
    for (const listener of waiting) listener();
  }
}
