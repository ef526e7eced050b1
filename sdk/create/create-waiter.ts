/**
 * Orders 1…256 equal sandboxes under one key and waits until each item runs or has failed. @paper §2.1
 *
 * Follows the request actor and the sandboxes on `dsec.out` from before the create is sent. Core messages may be lost,
 * so items without news are also asked for, at a bounded pace and at once after a reconnect.
 */
import type { ApiResponse } from '#bus/api/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, type EdgeName, type RequestId, type SandboxId, parseSandboxId, requestIdFor, sandboxIdFor, shardOfRequest } from '#bus/ids.ts';
import { RequestState } from '#bus/request/schema.ts';
import { SandboxState } from '#bus/sandbox/state.ts';
import { requestAddress, sandboxAddress } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';
import { safeParse } from '#bus/proof.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Order } from '../run-options.ts';
import type { Session } from '../session.ts';
import type { CallOptions } from '../transport/api-client.ts';
import { newestStates } from '../transport/states.ts';
import { Assembly, type Item } from './assembly.ts';
import { NewsWait } from './news-wait.ts';

export type Ask = (call: CallOptions & { readonly timeoutMs: DurationMs }) => Promise<ApiResponse<'create'>>;
export type CreateOrder = {
  readonly key: ClientKey;
  readonly count: number;
  /** The key may have been used before: its commits lie in the past and have to be asked for. */
  readonly mayExist: boolean;
} & (
  | { readonly spec: Order['spec'] }
  /** Ordered by something else than a create. */
  | { readonly ask: Ask }
);
export type CreateWaitOptions = {
  readonly deadlineAt: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onSettled?: (item: Item) => void;
};

/** Resolves with every item settled, or with those left open when the time was over; throws what the create itself was refused with. */
export const createAndWait = async (session: Session, order: CreateOrder, options: CreateWaitOptions): Promise<Assembly> => {
  const requestId = requestIdFor(session.project, order.key, await session.shardCount({ signal: options.signal }));
  const startedAt = session.clock.now();
  const waiter = new CreateWaiter(session, order, options, requestId);
  try {
    const answered = await waiter.send();
    if (answered.requestId !== requestId) return await retryWithFreshShards(session, order, options, answered);
    await waiter.settle();
    if (order.count === 1 && waiter.assembly.done) session.sawCreate(session.clock.now() - startedAt);
    return waiter.assembly;
  } finally {
    waiter.close();
  }
};

/** The platform was set up anew with other shards while this client was connected; what it answered is the truth. */
const retryWithFreshShards = async (
  session: Session,
  order: CreateOrder,
  options: CreateWaitOptions,
  { requestId, bodyHash }: ApiResponse<'create'>,
): Promise<Assembly> => {
  await session.shardCount({ fresh: true, signal: options.signal });
  const waiter = new CreateWaiter(session, { ...order, mayExist: true }, options, requestId);
  waiter.assembly.expectBody(bodyHash);
  try {
    await waiter.settle();
    return waiter.assembly;
  } finally {
    waiter.close();
  }
};

class CreateWaiter {
  readonly assembly: Assembly;
  readonly #session: Session;
  readonly #order: CreateOrder;
  readonly #options: CreateWaitOptions;
  readonly #wide: boolean;
  /** What is followed, by actor id; items that settle leave it. */
  readonly #following = new Map<string, () => void>();
  readonly #wait: NewsWait;
  readonly #offReconnect: () => void;
  readonly #offLoss: () => void;

  constructor(session: Session, order: CreateOrder, options: CreateWaitOptions, requestId: RequestId) {
    this.#session = session;
    this.#order = order;
    this.#options = options;
    this.#wide = order.count > SDK_LIMITS.exactSubscriptions;
    this.assembly = new Assembly(requestId, order.count, session.clock.now(), order.mayExist);
    this.#wait = new NewsWait(session, options);
    const onFailure = (error: DsecError): void => this.#wait.fail(error);
    this.#following.set(
      requestId,
      session.feed.follow(requestAddress(session.project, requestId), { onCommit: (commit) => this.#onRequest(commit), onFailure }),
    );
    this.#offReconnect = session.bus.onReconnect(() => this.#wait.missed());
    this.#offLoss = session.losses.onLoss('*', (edge) => this.#onLoss(edge));
    this.#followGuess();
  }

  async send(): Promise<ApiResponse<'create'>> {
    const { timeoutMs, signal } = this.#options;
    const call = { timeoutMs: Math.max(1_000, timeoutMs) as DurationMs, giveUpAfterMs: this.#wait.leftMs, signal };
    const ask = 'ask' in this.#order ? this.#order.ask : asCreate(this.#session, this.#order);
    const { requestId, bodyHash } = await ask(call);
    this.assembly.expectBody(bodyHash);
    return { requestId, bodyHash };
  }

  /** Waits for the news, asking for what does not come. */
  settle(): Promise<void> {
    return this.#wait.until({
      isDone: () => this.assembly.done,
      ask: (quietMs) => this.#catchUp(quietMs),
      mayExist: this.#order.mayExist,
      firstPauseMs: this.#firstPauseMs,
      isFew: !this.#wide,
    });
  }

  get #firstPauseMs(): number {
    const { catchUpFirstOneMs, catchUpFirstManyMs, catchUpPatience } = SDK_LIMITS;
    return this.#wide ? catchUpFirstManyMs : Math.min(catchUpFirstManyMs, Math.max(catchUpFirstOneMs, catchUpPatience * this.#session.createMs));
  }

  close(): void {
    this.#offReconnect();
    this.#offLoss();
    for (const stop of this.#following.values()) stop();
    this.#following.clear();
  }

  /**
   * A sandbox's id is a function of its request and its Edge, so the subject of a single create can be guessed before
   * it is placed: on one node the guess is always right, and no news can be missed.
   */
  #followGuess(): void {
    const edge = this.#session.edgeHint;
    if (edge && this.#order.count === 1 && !this.#order.mayExist) this.#follow(sandboxIdFor(this.assembly.requestId, 0, 0, edge));
  }

  #follow(id: SandboxId): void {
    if (this.#following.has(id)) return;
    const follower = {
      onCommit: (commit: Commit, message: { sequence(): number | undefined }) => this.#onSandbox(id, commit, message),
      onFailure: (error: DsecError) => this.#wait.fail(error),
    };
    this.#following.set(id, this.#session.feed.follow(sandboxAddress(this.#session.project, id), follower, this.#wide));
  }

  /** Items on that Edge are lost or go to another: both are to be asked for. */
  #onLoss(edge: EdgeName): void {
    if (this.assembly.pending.some((item) => item.edge === edge)) this.#wait.missed();
  }

  #unfollow(id: SandboxId | null): void {
    if (id === null) return;
    this.#following.get(id)?.();
    this.#following.delete(id);
  }

  #onRequest(commit: Commit): void {
    const state = safeParse(RequestState, commit.state);
    if (state.success) this.#applyRequest(commit.version, state.data);
  }

  #onSandbox(id: SandboxId, commit: Commit, message: { sequence(): number | undefined }): void {
    const state = safeParse(SandboxState, commit.state);
    if (!state.success || state.data.id !== id) return;
    if (this.#applySandbox(commit.version, state.data)) this.#session.saw(parseSandboxId(id).shard, message.sequence());
  }

  #applyRequest(version: number, state: RequestState): void {
    if (this.assembly.done) return;
    const before = new Map(this.assembly.items.map((item) => [item.index, item.sandboxId]));
    for (const item of this.assembly.applyRequest(version, state, this.#session.clock.now())) {
      const old = before.get(item.index) ?? null;
      if (old !== item.sandboxId) this.#unfollow(old);
      if (item.outcome) this.#settled(item);
      else if (item.sandboxId) this.#follow(item.sandboxId);
      if (item.edge) this.#session.edgeHint = item.edge;
    }
    if (this.assembly.conflict) this.#wait.fail(keyConflict(this.#order.key));
  }

  /** True when this settled an item. */
  #applySandbox(version: number, state: SandboxState, lost = false): boolean {
    const item = this.assembly.applySandbox(version, state, this.#session.clock.now(), lost);
    if (!item?.outcome) return false;
    this.#settled(item);
    return true;
  }

  #settled(item: Item): void {
    this.#unfollow(item.sandboxId);
    this.#options.onSettled?.(item);
    if (this.assembly.done) this.#wait.done();
  }

  /** Asks for the request and for the states of items that have been quiet for `quietMs`: a large group is mostly news, not silence. */
  async #catchUp(quietMs: number): Promise<void> {
    const { api, clock } = this.#session;
    const quiet = (item: Item): boolean => item.newsAt <= clock.now() - quietMs;
    const call = { giveUpAfterMs: this.#wait.leftMs, signal: this.#options.signal };
    try {
      if (this.assembly.pending.some(quiet)) {
        const answer = await api.call('request', { id: this.assembly.requestId }, call);
        this.#session.saw(shardOfRequest(this.assembly.requestId), answer.streamSequence);
        this.#applyRequest(answer.version, answer.state);
      }
      const ids = this.assembly.pending.flatMap((item) => (item.sandboxId && (quietMs === 0 || quiet(item)) ? [item.sandboxId] : []));
      for await (const view of newestStates(this.#session, ids, call)) {
        if (!view) continue; // assigned, and its Edge has not decided yet
        this.#session.saw(parseSandboxId(view.state.id).shard, view.streamSequence);
        this.#applySandbox(view.version, view.state, view.lost);
      }
    } catch (thrown) {
      if (!isPassing(thrown)) throw thrown;
    }
  }
}

const asCreate =
  (session: Session, { key, count, spec, mayExist }: Extract<CreateOrder, { spec: unknown }>): Ask =>
  ({ timeoutMs, ...call }) =>
    session.api.call('create', { key, freshKey: !mayExist, count, spec, timeoutMs }, call);

export const keyConflict = (key: ClientKey): DsecError =>
  DsecError.of('KEY_CONFLICT', `key "${key}" already names a create with other options; use a new key for a new request`, { details: { key } });

/** Not placed yet, or nobody could be asked: the create itself was accepted, so there may still be news. */
export const isPassing = (thrown: unknown): boolean =>
  thrown instanceof DsecError &&
  ['REQUEST_NOT_FOUND', 'API_UNAVAILABLE', 'BUS_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'OVERLOADED', 'OUTCOME_UNKNOWN'].includes(thrown.code);
