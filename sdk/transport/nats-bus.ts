/**
 * The bus over one NATS connection: one muxed inbox, reconnects for ever, translation of the library's errors.
 *
 * The library drops what is published while disconnected and leaves requests that died with a connection to their
 * time-outs; here both fail at once as `disconnected`, so that the caller repeats them on the new connection.
 */
import {
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NodeConnectionOptions,
  connect as connectNats,
  createInbox,
  headers as createHeaders,
  errors,
  nkeyAuthenticator,
  type Subscription,
} from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Context } from '../context.ts';
import { type Bus, BusFailure, type BusMessage } from './bus.ts';
import { type Clock, systemClock } from './clock.ts';
import { backoffMs } from './retry.ts';
import { isRefusedAtOnce, type WhyNot, whyNot } from './sign-in.ts';

type Pending = {
  readonly subject: string;
  readonly resolve: (data: Uint8Array) => void;
  readonly reject: (failure: BusFailure) => void;
  readonly timer: NodeJS.Timeout;
};

export class NatsBus implements Bus {
  readonly #nats: NatsConnection;
  readonly #inbox: string;
  readonly #pending = new Map<string, Pending>();
  readonly #reconnectListeners = new Set<() => void>();
  /** Subscriptions that nobody follows any more. */
  #leaving: Subscription[] = [];
  #leaveTimer: NodeJS.Timeout | undefined;
  #connected = true;
  #nextToken = 0;

  constructor(nats: NatsConnection, inboxPrefix: string | undefined) {
    this.#nats = nats;
    this.#inbox = `${createInbox(inboxPrefix)}.`;
    nats.subscribe(`${this.#inbox}*`, { callback: (error, message) => this.#onAnswer(error, message) });
    void this.#watchStatus();
  }

  request(subject: string, payload: Uint8Array, timeoutMs: number, headers?: Readonly<Record<string, string>>): Promise<Uint8Array> {
    if (this.#nats.isClosed()) return Promise.reject(new BusFailure('closed', 'the connection is closed'));
    if (!this.#connected) return Promise.reject(new BusFailure('disconnected', 'not connected'));
    if (this.#pending.size >= SDK_LIMITS.requestsInFlight) {
      return Promise.reject(new BusFailure('overloaded', `${SDK_LIMITS.requestsInFlight} requests wait for an answer already; send fewer at a time`));
    }
    const token = (this.#nextToken++).toString(36);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(token, new BusFailure('timeout', `no answer on ${subject} within ${timeoutMs} ms`)), timeoutMs);
      this.#pending.set(token, { subject, resolve, reject, timer });
      try {
        this.#nats.publish(subject, payload, { reply: this.#inbox + token, ...(headers ? { headers: natsHeaders(headers) } : {}) });
        this.#leave();
      } catch (cause) {
        this.#fail(token, new BusFailure('disconnected', 'the message could not be sent', { cause }));
      }
    });
  }

  subscribe(subject: string, onMessage: (message: BusMessage) => void, onFailure: (failure: BusFailure) => void): () => void {
    if (this.#nats.isClosed()) {
      onFailure(new BusFailure('closed', 'the connection is closed'));
      return () => {};
    }
    let isFollowed = true;
    const subscription = this.#nats.subscribe(subject, {
      callback: (error, message) => {
        if (!isFollowed) return;
        if (error) onFailure(new BusFailure('forbidden', `may not subscribe to ${subject}`, { cause: error }));
        else onMessage({ subject: message.subject, data: message.data, sequence: () => sequenceOf(message) });
      },
    });
    return () => {
      isFollowed = false;
      this.#leaving.push(subscription);
      this.#leaveTimer ??= setTimeout(() => this.#leave(), SDK_LIMITS.unsubscribeLingerMs).unref();
    };
  }

  /** Nobody waits for the server to hear of it, so it hears of it with the next request, in the same write, or after a moment. */
  #leave(): void {
    if (this.#leaveTimer === undefined) return;
    clearTimeout(this.#leaveTimer);
    this.#leaveTimer = undefined;
    const leaving = this.#leaving.splice(0);
    if (!this.#nats.isClosed()) for (const subscription of leaving) subscription.unsubscribe();
  }

  onReconnect(listener: () => void): () => void {
    this.#reconnectListeners.add(listener);
    return () => this.#reconnectListeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#failAll(() => new BusFailure('closed', 'the client was closed'));
    await this.#nats.close();
  }

  #onAnswer(error: Error | null, message: Msg): void {
    if (error) return this.#failAll(() => new BusFailure('forbidden', 'may not receive answers on its inbox', { cause: error }));
    const token = message.subject.slice(this.#inbox.length);
    const pending = this.#pending.get(token);
    if (!pending) return; // the answer of an attempt that was given up
    if (message.data.length === 0 && message.headers?.code === 503)
      return this.#fail(token, new BusFailure('no_responders', `nobody listens on ${pending.subject}`));
    clearTimeout(pending.timer);
    this.#pending.delete(token);
    pending.resolve(message.data);
  }

  #fail(token: string, failure: BusFailure): void {
    const pending = this.#pending.get(token);
    if (!pending) return;
    clearTimeout(pending.timer);
    this.#pending.delete(token);
    pending.reject(failure);
  }

  #failAll(failure: (pending: Pending) => BusFailure | undefined): void {
    for (const [token, pending] of [...this.#pending]) {
      const why = failure(pending);
      if (why) this.#fail(token, why);
    }
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.#nats.status()) {
      if (status.type === 'disconnect') {
        this.#connected = false;
        this.#failAll(() => new BusFailure('disconnected', 'the connection was lost'));
      } else if (status.type === 'reconnect') {
        this.#connected = true;
        for (const listener of [...this.#reconnectListeners]) listener();
      } else if (status.type === 'error' && status.error instanceof errors.PermissionViolationError && status.error.operation === 'publish') {
        const { subject } = status.error;
        this.#failAll((pending) => (pending.subject === subject ? new BusFailure('forbidden', `may not publish to ${subject}`) : undefined));
      }
    }
    this.#failAll(() => new BusFailure('closed', 'the connection is closed'));
  }
}

const natsHeaders = (given: Readonly<Record<string, string>>): MsgHdrs => {
  const made = createHeaders();
  for (const [name, value] of Object.entries(given)) made.set(name, value);
  return made;
};

const sequenceOf = (message: Msg): number | undefined => {
  const value = Number(message.headers?.get('Nats-Sequence') || Number.NaN);
  return Number.isSafeInteger(value) ? value : undefined;
};

/**
 * Connects, waiting for a server or an iam that is still starting; a refusal of the credentials ends it at once. UNAUTHENTICATED,
 * IAM_UNAVAILABLE or BUS_UNAVAILABLE.
 */
export const connectBus = async (
  context: Context,
  options: { readonly name: string; readonly timeoutMs: number; readonly clock?: Clock },
): Promise<NatsBus> => {
  const clock = options.clock ?? systemClock;
  const giveUpAt = clock.now() + options.timeoutMs;
  const tryMs = (): number => Math.max(1, Math.min(SDK_LIMITS.signInTimeoutMs, giveUpAt - clock.now()));
  const signIn = async (server: string): Promise<void> =>
    (await connectNats({ ...natsOptions({ ...context, servers: [server] }, options.name, SDK_LIMITS.signInTimeoutMs), reconnect: false })).close();
  for (let n = 0; ; n += 1) {
    const startedAt = clock.now();
    try {
      return new NatsBus(await connectNats(natsOptions(context, options.name, tryMs())), context.inboxPrefix);
    } catch (cause) {
      if (isRefusedAtOnce(cause, clock.now() - startedAt)) throw connectError(context, cause, 'refused');
      const delayMs = backoffMs(n, clock.random());
      if (clock.now() + delayMs >= giveUpAt) throw connectError(context, cause, await whyNot(context.servers, signIn, () => clock.now()));
      await clock.sleep(delayMs);
    }
  }
};

const natsOptions = (context: Context, name: string, timeoutMs: number): NodeConnectionOptions => ({
  servers: [...context.servers],
  name,
  timeout: timeoutMs,
  maxReconnectAttempts: -1,
  reconnectTimeWait: SDK_LIMITS.reconnectWaitMs,
  reconnectJitter: SDK_LIMITS.reconnectJitterMs,
  pingInterval: SDK_LIMITS.pingIntervalMs,
  // While an authentication service restarts, good credentials look bad: an established client keeps trying.
  ignoreAuthErrorAbort: true,
  // A context names every server. Told of the others anew at each attempt, the library would never come to the end of its list:
  // refused credentials would be shown to a cluster again and again, for ever.
  ignoreClusterUpdates: true,
  noAsyncTraces: true,
  ...(context.inboxPrefix === undefined ? {} : { inboxPrefix: context.inboxPrefix }),
  ...authentication(context),
});

const authentication = ({ credentials }: Context): NodeConnectionOptions => {
  if (!credentials) return {};
  if ('nkeySeed' in credentials) return { authenticator: nkeyAuthenticator(new TextEncoder().encode(credentials.nkeySeed)) };
  return 'token' in credentials ? { token: credentials.token } : { user: credentials.user, pass: credentials.password };
};

const connectError = (context: Context, cause: unknown, why: WhyNot): DsecError => {
  const servers = context.servers.join(', ');
  if (why === 'refused')
    return DsecError.of('UNAUTHENTICATED', `the bus at ${servers} refused these credentials; use a current context file (DSEC_CONTEXT)`, { cause });
  if (why === 'silent')
    return DsecError.of('IAM_UNAVAILABLE', `the bus at ${servers} is there, and nothing says who may connect: no iam process answers; try again`, {
      cause,
      outcome: 'not_applied',
    });
  const said = cause instanceof Error ? cause.message : String(cause);
  return DsecError.of(
    'BUS_UNAVAILABLE',
    `no connection to the bus at ${servers} (${said}); start the platform with \`dsec up\` or name its context file in DSEC_CONTEXT`,
    { cause, outcome: 'not_applied' },
  );
};
