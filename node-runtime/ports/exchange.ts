/** One exchange with a server inside: an HTTP request, or a connection whose bytes are nobody's business here. */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { DsecError } from '#bus/errors.ts';
import type { HttpHead, PortTarget } from '#bus/op/ports.ts';
import type { OpParsed } from '#bus/op/schema.ts';
import { nameOf } from './dial.ts';
import { Inbound } from './inbound.ts';
import { Outbound } from './outbound.ts';

/** How a connection is made. */
export type Dial = (target: PortTarget) => Promise<Socket>;

export class Exchange {
  readonly inbound = new Inbound();
  readonly #target: PortTarget;
  /** Settles when the connection is made and, for a request, the head of its answer is there. */
  readonly opened: Promise<void>;
  head: HttpHead | null = null;
  usedAtMs: number;
  #outbound: Outbound | undefined;
  #socket: Socket | undefined;
  #problem: DsecError | undefined;
  #destroyed = false;

  private constructor(target: PortTarget, nowMs: number, open: (exchange: Exchange) => Promise<void>) {
    this.#target = target;
    this.usedAtMs = nowMs;
    this.opened = open(this).catch((thrown: unknown) => this.#fail(this.#typed(thrown)));
  }

  static dial(dial: Dial, target: PortTarget, nowMs: number): Exchange {
    return new Exchange(target, nowMs, async (exchange) => {
      const socket = await exchange.#connect(dial);
      exchange.#outbound = new Outbound(socket);
      exchange.inbound.attach(socket);
      socket.once('close', () => exchange.#fail(exchange.#broken('it was closed')));
    });
  }

  static fetch(dial: Dial, order: OpParsed<'fetch'>, body: Uint8Array, nowMs: number): Exchange {
    return new Exchange(order.target, nowMs, async (exchange) => {
      const overdue = order.timeoutMs === undefined ? undefined : setTimeout(() => exchange.#onOverdue(order), order.timeoutMs);
      try {
        const socket = await exchange.#connect(dial);
        await exchange.#request(socket, order, body);
      } finally {
        clearTimeout(overdue);
      }
    });
  }

  /** Nothing more happens in it: what is asked about it is answered from what is here. */
  get finished(): boolean {
    return this.inbound.ended || this.#problem !== undefined;
  }

  /** Throws why it failed. */
  assertOpen(): void {
    if (this.#problem && this.inbound.end === 0 && this.head === null) throw this.#problem;
  }

  async put(offset: number, bytes: Uint8Array, close: boolean): Promise<number> {
    if (this.#problem) throw this.#problem;
    if (!this.#outbound) throw DsecError.of('INVALID_STATE', `the connection to ${nameOf(this.#target)} is not open yet; send when it is`, { retry: 'later' });
    const taken = await this.#outbound.put(offset, bytes, close);
    if (this.#problem) throw this.#problem;
    return taken;
  }

  destroy(why: DsecError): void {
    this.#destroyed = true;
    this.#fail(why);
    this.#socket?.destroy();
  }

  async #connect(dial: Dial): Promise<Socket> {
    const socket = await dial(this.#target);
    if (this.#destroyed) socket.destroy();
    this.#socket = socket;
    socket.on('error', (error) => this.#fail(this.#typed(error)));
    return socket;
  }

  #request(socket: Socket, order: OpParsed<'fetch'>, body: Uint8Array): Promise<void> {
    const request = httpRequest({ createConnection: () => socket, method: order.method, path: order.path, headers: headersOf(order, body) });
    this.#outbound = new Outbound(request);
    void this.#outbound.put(0, body, !order.more);
    return new Promise((resolve, reject) => {
      request.once('response', (response) => {
        this.head = headOf(response);
        response.on('error', (error) => this.#fail(this.#typed(error)));
        this.inbound.attach(response);
        resolve();
      });
      request.once('upgrade', () => reject(this.#broken('it answered with another protocol; connect to the port to speak that')));
      request.on('error', (error) => reject(error));
      this.#onProblem(request, reject);
    });
  }

  /** A time-out or a hang-up that came first ends the request too. */
  #onProblem(request: ClientRequest, reject: (problem: DsecError) => void): void {
    request.once('close', () => {
      if (this.#problem) reject(this.#problem);
    });
    if (this.#problem) reject(this.#problem);
  }

  #onOverdue({ timeoutMs, method, path }: OpParsed<'fetch'>): void {
    this.destroy(
      DsecError.of('DEADLINE_EXCEEDED', `${nameOf(this.#target)} of the sandbox gave no answer to ${method} ${path.slice(0, 100)} within ${timeoutMs} ms`, {
        fault: 'agent',
      }),
    );
  }

  #fail(problem: DsecError): void {
    this.#problem ??= problem;
    this.inbound.fail(this.#problem);
  }

  #typed(thrown: unknown): DsecError {
    if (thrown instanceof DsecError) return thrown;
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code?.startsWith('HPE_')) return this.#broken(`its answer is no HTTP (${message})`);
    return this.#broken(message, thrown);
  }

  #broken(why: string, cause?: unknown): DsecError {
    return DsecError.of('CONNECTION_BROKEN', `the connection to ${nameOf(this.#target)} of the sandbox broke: ${why}`, cause === undefined ? {} : { cause });
  }
}

const headOf = (response: IncomingMessage): HttpHead => ({
  status: response.statusCode ?? 0,
  statusText: response.statusMessage ?? '',
  headers: Array.from({ length: response.rawHeaders.length / 2 }, (_, i) => [response.rawHeaders[2 * i] ?? '', response.rawHeaders[2 * i + 1] ?? '']),
});

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** The client's, one value list per name, and what HTTP wants beside them. */
const headersOf = ({ target, method, headers, more }: OpParsed<'fetch'>, body: Uint8Array): Record<string, string | string[]> => {
  const lists = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (const [name, value] of headers) {
    const list = lists.get(name.toLowerCase()) ?? { name, values: [] };
    lists.set(name.toLowerCase(), list);
    list.values.push(value);
  }
  const all: Record<string, string | string[]> = { Host: typeof target === 'number' ? `localhost:${target}` : 'localhost' };
  if (lists.has('host')) delete all['Host'];
  for (const { name, values } of lists.values()) all[name] = values.length === 1 ? (values[0] as string) : values;
  const hasLength = lists.has('content-length') || lists.has('transfer-encoding');
  if (!hasLength && more) all['Transfer-Encoding'] = 'chunked';
  else if (!hasLength && (body.byteLength > 0 || METHODS_WITH_BODY.has(method.toUpperCase()))) all['Content-Length'] = String(body.byteLength);
  return all;
};
