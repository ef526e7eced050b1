/**
 * Servers inside one sandbox, as the Edge serves them to clients: HTTP requests and raw connections. @paper §3.3
 *
 * An exchange is named by its client, so that a repeated message finds it; it is opened once, never again, and lives in this
 * process only. Whoever asks about one that is not here is told so, and decides itself whether to begin anew.
 */
import type { Socket } from 'node:net';
import type { Clock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import { PORT_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import type { PortOpName, PortTarget } from '#bus/op/ports.ts';
import type { OpParsed, OpResponse } from '#bus/op/schema.ts';
import { Semaphore } from '../roles/semaphore.ts';
import { dialInside } from './dial.ts';
import { Exchange } from './exchange.ts';
import { EXCHANGE_LIMITS } from './limits.ts';

export type PortServiceOptions = {
  /** Where the sandbox's agent listens. */
  readonly socketPath: string;
  readonly clock: Clock;
  readonly onActivity: () => void;
};

export type PortResult<O extends PortOpName> = { readonly data: OpResponse<O>; readonly body: readonly Uint8Array[] };
type Handlers = { readonly [O in PortOpName]: (request: OpParsed<O>, body: Uint8Array) => Promise<PortResult<O>> };

export class PortService {
  readonly #o: PortServiceOptions;
  readonly #exchanges = new Map<string, Exchange>();
  readonly #dials = new Semaphore(EXCHANGE_LIMITS.dialsInFlight);
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: PortServiceOptions) {
    this.#o = options;
  }

  handle<O extends PortOpName>(op: O, request: OpParsed<O>, body: Uint8Array): Promise<PortResult<O>> {
    this.#o.onActivity();
    return this.#handlers[op](request, body);
  }

  close(): void {
    clearInterval(this.#sweeper);
    for (const exchange of this.#exchanges.values()) exchange.destroy(lost('this node stops serving the sandbox for now'));
    this.#exchanges.clear();
  }

  readonly #handlers: Handlers = {
    fetch: async (request, body) => {
      const exchange = this.#exchanges.get(request.id) ?? this.#add(request.id, () => Exchange.fetch(this.#dial, request, body, this.#o.clock.now()));
      await within(exchange.opened, request.waitMs);
      this.#assertOpen(request.id, exchange);
      if (exchange.head) await exchange.inbound.wait(0, EXCHANGE_LIMITS.headPatienceMs);
      return this.#received(exchange, 0, WIRE_LIMITS.maxChunkBytes);
    },
    dial: async ({ id, target }) => {
      const exchange = this.#exchanges.get(id) ?? this.#add(id, () => Exchange.dial(this.#dial, target, this.#o.clock.now()));
      await exchange.opened;
      this.#assertOpen(id, exchange);
      return { data: {}, body: [] };
    },
    send: async ({ id, offset, close }, body) => ({ data: { nextOffset: await this.#known(id).put(offset, body, close) }, body: [] }),
    receive: async ({ id, offset, maxBytes, waitMs }) => {
      const exchange = this.#known(id);
      const deadlineMs = this.#o.clock.monotonicMs() + waitMs;
      await within(exchange.opened, waitMs);
      exchange.assertOpen();
      await exchange.inbound.wait(offset, deadlineMs - this.#o.clock.monotonicMs());
      return this.#received(exchange, offset, maxBytes);
    },
    hangup: async ({ id }) => {
      this.#exchanges.get(id)?.destroy(lost('its client hung up'));
      this.#exchanges.delete(id);
      return { data: {}, body: [] };
    },
  };

  readonly #dial = (target: PortTarget): Promise<Socket> => this.#dials.run(() => dialInside(this.#o.socketPath, target));

  /** One that certainly did nothing leaves no trace: the same message may begin it again. */
  #assertOpen(id: string, exchange: Exchange): void {
    try {
      exchange.assertOpen();
    } catch (thrown) {
      if (thrown instanceof DsecError && thrown.outcome === 'not_applied') this.#exchanges.delete(id);
      throw thrown;
    }
  }

  #received(exchange: Exchange, offset: number, maxBytes: number): { readonly data: OpResponse<'receive'>; readonly body: readonly Uint8Array[] } {
    exchange.usedAtMs = this.#o.clock.now();
    const { bytes, eof } = exchange.inbound.read(offset, maxBytes);
    return { data: { head: exchange.head, offset, eof }, body: [bytes] };
  }

  #known(id: string): Exchange {
    const exchange = this.#exchanges.get(id);
    if (!exchange) throw lost('the node does not know it; it may have restarted, or nothing was asked for too long');
    exchange.usedAtMs = this.#o.clock.now();
    return exchange;
  }

  #add(id: string, open: () => Exchange): Exchange {
    if (this.#exchanges.size >= PORT_LIMITS.exchanges) this.#makeRoom();
    const exchange = open();
    this.#exchanges.set(id, exchange);
    this.#sweeper ??= setInterval(() => this.#sweep(), EXCHANGE_LIMITS.sweepMs).unref();
    return exchange;
  }

  /** What is over is kept for a client that has missed the answer, until the room is needed. */
  #makeRoom(): void {
    for (const [id, exchange] of this.#exchanges) {
      if (!exchange.finished) continue;
      this.#exchanges.delete(id);
      return;
    }
    throw DsecError.of('OVERLOADED', `${PORT_LIMITS.exchanges} requests and connections to servers of this sandbox are open; end some first`);
  }

  #sweep(): void {
    const since = this.#o.clock.now() - PORT_LIMITS.idleMs;
    for (const [id, exchange] of this.#exchanges) {
      if (exchange.usedAtMs > since) continue;
      exchange.destroy(lost('nothing was asked about it for too long'));
      this.#exchanges.delete(id);
    }
    if (this.#exchanges.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

const lost = (why: string): DsecError => DsecError.of('CONNECTION_LOST', `the exchange with the server in the sandbox is gone: ${why}; begin a new one`);

const within = async (work: Promise<void>, ms: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    work,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
};
