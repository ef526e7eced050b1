/**
 * Sends one group (up to 32,768 equal sandboxes under one key, in one call) and waits until each item runs or has failed. @paper §2.1
 *
 * Follows the parent and its chunks on `dsec.out`, never the sandboxes themselves: what a chunk's commit says settles up to 256 items
 * at once. Core messages may be lost, so chunks without news are also asked for, at a bounded pace and at once after a reconnect.
 */
import type { Commit } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, type RequestId, requestIdFor, shardOfRequest } from '#bus/ids.ts';
import type { GroupMode } from '#bus/request/group.ts';
import { RequestState } from '#bus/request/schema.ts';
import { requestAddress } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';
import { safeParse } from '#bus/proof.ts';
import { forEachLimited } from '../concurrency.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Order } from '../run-options.ts';
import type { Session } from '../session.ts';
import type { Follower } from '../transport/feed.ts';
import { isPassing, keyConflict } from './create-waiter.ts';
import { NewsWait } from './news-wait.ts';
import { GroupAssembly, type GroupAssemblyItem } from './group-assembly.ts';

export type GroupOrder = {
  readonly key: ClientKey;
  readonly count: number;
  readonly mode: GroupMode;
  readonly spec: Order['spec'];
  readonly mayExist: boolean;
};
export type GroupWaitOptions = {
  readonly deadlineAt: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onSettled: (item: GroupAssemblyItem) => void;
};

/** Resolves with every item settled, or with those left open when the time was over; throws what the create itself was refused with. */
export const createGroupAndWait = async (session: Session, order: GroupOrder, options: GroupWaitOptions): Promise<GroupAssembly> => {
  const shards = await session.shardCount({ signal: options.signal });
  const waiter = new GroupWaiter(session, order, options, requestIdFor(session.project, order.key, shards), shards);
  try {
    await waiter.send();
    await waiter.settle();
    return waiter.assembly;
  } finally {
    waiter.close();
  }
};

class GroupWaiter {
  readonly assembly: GroupAssembly;
  readonly #session: Session;
  readonly #order: GroupOrder;
  readonly #options: GroupWaitOptions;
  readonly #stops: (() => void)[] = [];
  readonly #wait: NewsWait;

  constructor(session: Session, order: GroupOrder, options: GroupWaitOptions, requestId: RequestId, shardCount: number) {
    this.#session = session;
    this.#order = order;
    this.#options = options;
    this.assembly = new GroupAssembly(requestId, order.count, shardCount, session.clock.now());
    this.#wait = new NewsWait(session, options);
    const follow = (id: RequestId, onCommit: (commit: Commit) => void): void => {
      const follower: Follower = {
        onCommit: (commit, message) => {
          session.saw(shardOfRequest(id), message.sequence()); // its sandboxes' commits lie before it in the same shard
          onCommit(commit);
        },
        onFailure: (error) => this.#wait.fail(error),
      };
      this.#stops.push(session.feed.follow(requestAddress(session.project, id), follower, true));
    };
    follow(requestId, (commit) => this.#onState(commit, (version, state) => this.assembly.applyParent(version, state)));
    for (const { id, n } of this.assembly.chunks)
      follow(id, (commit) => this.#onState(commit, (version, state) => this.assembly.applyChunk(n, version, state, session.clock.now())));
    this.#stops.push(session.bus.onReconnect(() => this.#wait.missed()));
  }

  async send(): Promise<void> {
    const { key, count, mode, spec, mayExist } = this.#order;
    const { timeoutMs, signal } = this.#options;
    const wire = { key, freshKey: !mayExist, count, mode, spec, timeoutMs: Math.max(1_000, timeoutMs) as DurationMs };
    const { requestId, bodyHash } = await this.#session.api.call('create', wire, { giveUpAfterMs: this.#wait.leftMs, signal });
    if (requestId !== this.assembly.requestId) {
      await this.#session.shardCount({ fresh: true, signal });
      throw DsecError.of('OUTCOME_UNKNOWN', `the platform was set up anew with other shards; repeat the call with key "${key}"`, { details: { key } });
    }
    this.assembly.expectBody(bodyHash);
  }

  settle(): Promise<void> {
    const { mayExist } = this.#order;
    const firstPauseMs = SDK_LIMITS.catchUpFirstManyMs;
    return this.#wait.until({ isDone: () => this.assembly.done, ask: (quietMs) => this.#catchUp(quietMs), mayExist, firstPauseMs, isFew: false });
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  #onState(commit: Pick<Commit, 'version' | 'state'>, apply: (version: number, state: RequestState) => readonly GroupAssemblyItem[]): void {
    const state = safeParse(RequestState, commit.state);
    if (!state.success) return;
    for (const item of apply(commit.version, state.data)) this.#options.onSettled(item);
    if (this.assembly.conflict) this.#wait.fail(keyConflict(this.#order.key));
    else if (this.assembly.done) this.#wait.done();
  }

  /** Asks for the parent, and for chunks that have been quiet for `quietMs`: at most 128 questions for a whole group. */
  async #catchUp(quietMs: number): Promise<void> {
    const { assembly } = this;
    const call = { giveUpAfterMs: this.#wait.leftMs, signal: this.#options.signal };
    const ask = async (id: RequestId, apply: (version: number, state: RequestState) => readonly GroupAssemblyItem[]): Promise<void> => {
      const answer = await this.#session.api.call('request', { id }, call);
      this.#session.saw(shardOfRequest(id), answer.streamSequence);
      this.#onState(answer, apply);
    };
    const before = this.#session.clock.now() - quietMs;
    const quiet = assembly.pending.filter(({ newsAt }) => newsAt <= before);
    try {
      await ask(assembly.requestId, (version, state) => assembly.applyParent(version, state));
      await forEachLimited(quiet, SDK_LIMITS.chunksAsked, async ({ id, n, open }) => {
        if (open > 0) await ask(id, (version, state) => assembly.applyChunk(n, version, state, this.#session.clock.now())).catch(unlessPassing);
      });
    } catch (thrown) {
      unlessPassing(thrown);
    }
  }
}

const unlessPassing = (thrown: unknown): void => {
  if (!isPassing(thrown)) throw thrown;
};
