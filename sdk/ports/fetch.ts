/** `sandbox.fetch`: the web's `fetch` towards a server in a sandbox, its loopback too. */
import { DsecError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { PortTarget } from '#bus/op/ports.ts';
import type { DurationMs } from '#bus/units.ts';
import type { Session } from '../session.ts';
import { longPollMs } from '../transport/op-client.ts';
import { PortExchange, type Received } from './exchange.ts';

export type FetchBody = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;
export type FetchInit = {
  readonly method?: string | undefined;
  readonly headers?: Headers | Readonly<Record<string, string>> | readonly (readonly [string, string])[] | undefined;
  readonly body?: FetchBody | undefined;
  /** Milliseconds until the head of the answer; DEADLINE_EXCEEDED then. None when absent. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
};

const NOTHING = new Uint8Array(0);
/** Answers that the web's Response does not let have a body. */
const BODILESS: ReadonlySet<number> = new Set([101, 204, 205, 304]);

export const fetchInside = async (session: Session, sandboxId: SandboxId, target: PortTarget, path: string, init: FetchInit): Promise<Response> => {
  const exchange = new PortExchange(session, sandboxId, init.signal);
  const { whole, stream } = bodyOf(init.body);
  const method = (init.method ?? (init.body === undefined ? 'GET' : 'POST')).toUpperCase();
  const headers = [...headersOf(init)] as [string, string][];
  const order = {
    target,
    method,
    path,
    headers,
    more: stream !== undefined,
    ...(init.timeoutMs === undefined ? {} : { timeoutMs: init.timeoutMs as DurationMs }),
  };
  try {
    const first = await exchange.fetch(order, whole, stream ? 0 : longPollMs(0));
    const answered = exchange.untilHead(first);
    return responseOf(exchange, await (stream ? whileFeeding(exchange, stream, answered) : answered));
  } catch (thrown) {
    exchange.hangUp();
    throw thrown;
  }
};

/** A server may answer without reading all of the body; whether that is a failure, its answer says. */
const whileFeeding = async <T>(exchange: PortExchange, stream: AsyncIterable<Uint8Array>, answered: Promise<T>): Promise<T> => {
  const feed = async (): Promise<void> => {
    for await (const chunk of stream) await exchange.send(chunk);
    await exchange.finish();
  };
  const failed = new Promise<never>((_, reject) => feed().catch((thrown: unknown) => (thrown instanceof DsecError ? undefined : reject(thrown))));
  return Promise.race([answered, failed]);
};

const bodyOf = (body: FetchBody | undefined): { readonly whole: Uint8Array; readonly stream: AsyncIterable<Uint8Array> | undefined } => {
  if (body === undefined) return { whole: NOTHING, stream: undefined };
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
    if (bytes.byteLength <= WIRE_LIMITS.maxChunkBytes) return { whole: bytes, stream: undefined };
    return { whole: NOTHING, stream: piece(bytes) };
  }
  return { whole: NOTHING, stream: body as AsyncIterable<Uint8Array> };
};
async function* piece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function* headersOf({ headers, body }: FetchInit): Generator<readonly [string, string]> {
  const pairs = headers === undefined ? [] : Symbol.iterator in headers ? [...(headers as Iterable<readonly [string, string]>)] : Object.entries(headers);
  yield* pairs;
  const named = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (typeof body === 'string' && !named.has('content-type')) yield ['content-type', 'text/plain;charset=UTF-8'];
  // a body whose length is known is not sent in HTTP's chunks, which small servers do not understand
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.byteLength : undefined;
  if (bytes !== undefined && bytes > WIRE_LIMITS.maxChunkBytes && !named.has('content-length')) yield ['content-length', String(bytes)];
}

const responseOf = (exchange: PortExchange, first: Received): Response => {
  const { head } = first.data;
  if (!head) throw DsecError.of('INTERNAL', 'an answer without a head');
  const headers = new Headers();
  for (const [name, value] of head.headers) headers.append(name, value);
  const init = { status: head.status, statusText: head.statusText, headers };
  if (BODILESS.has(head.status)) {
    exchange.hangUp();
    return new Response(null, init);
  }
  return new Response(streamOf(exchange, first), init);
};

const streamOf = (exchange: PortExchange, first: Received): ReadableStream<Uint8Array> => {
  const chunks = exchange.bytes(first);
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await chunks.next();
      if (!done) return controller.enqueue(Uint8Array.from(value)); // a copy: whoever reads may hand the memory on
      controller.close();
      exchange.hangUp();
    },
    cancel: () => exchange.hangUp(),
  });
};
