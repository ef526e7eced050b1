/**
 * Losses of Edges, heard at once: watchers say on the bus that an Edge was declared lost, and the apiserver says whether a
 * sandbox was lost with it. The notice alone decides nothing; it is a reason to ask.
 */
import { EdgeLostNotice } from '#bus/edge/schema.ts';
import { DsecError } from '#bus/errors.ts';
import { type EdgeName, parseSandboxId, type ProjectName, type SandboxId } from '#bus/ids.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { LOST_FILTER } from '#bus/subjects.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { ApiClient } from './api-client.ts';
import type { Bus } from './bus.ts';
import type { Clock } from './clock.ts';

export const noSandbox = (id: SandboxId, project: ProjectName): DsecError =>
  DsecError.of('SANDBOX_NOT_FOUND', `no sandbox ${id} in project ${project}; \`dsec ls\` lists them`, { details: { sandboxId: id } });

export type LossListener = (edge: EdgeName) => void;

export class Losses {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #api: ApiClient;
  readonly #listeners = new Map<EdgeName | '*', Set<LossListener>>();
  #isSubscribed = false;

  constructor(bus: Bus, clock: Clock, api: ApiClient) {
    this.#bus = bus;
    this.#clock = clock;
    this.#api = api;
  }

  /** Calls `listener` with each notice about an Edge, or about any, until the returned function is called. */
  onLoss(edge: EdgeName | '*', listener: LossListener): () => void {
    this.#subscribe();
    const listeners = this.#listeners.get(edge) ?? new Set();
    this.#listeners.set(edge, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(edge) === listeners) this.#listeners.delete(edge);
    };
  }

  /** The error to end with when the sandbox was lost, or never was; undefined when it is there, or nobody can say. */
  async lossOf(id: SandboxId): Promise<DsecError | undefined> {
    try {
      const { sandboxes } = await this.#api.call('get', { ids: [id] }, { giveUpAfterMs: SDK_LIMITS.attemptTimeoutMs });
      const view = sandboxes[0];
      if (view === null) return noSandbox(id, this.#api.project); // an id that was never given, or a record that is forgotten
      return view?.lost && view.state.failure ? new DsecError(view.state.failure) : undefined;
    } catch (thrown) {
      if (thrown instanceof DsecError) return undefined;
      throw thrown;
    }
  }

  /** Runs a call on a sandbox, and ends it with SANDBOX_LOST as soon as that is known. */
  async guard<T>(id: SandboxId, call: (beforeRepeat: () => Promise<void>) => Promise<T>): Promise<T> {
    let off = () => {};
    const lost = new Promise<never>((_, reject) => {
      off = this.onLoss(parseSandboxId(id).edge, () => void this.lossOf(id).then((error) => error && reject(error), reject));
    });
    lost.catch(() => {}); // it may come when nobody waits any more
    const called = call(this.#askNowAndThen(id));
    called.catch(() => {}); // the loss may have come first
    try {
      return await Promise.race([called, lost]);
    } finally {
      off();
    }
  }

  /** A notice may have been missed: who gets no answer asks, not at every repetition. */
  #askNowAndThen(id: SandboxId): () => Promise<void> {
    let nextAt = this.#clock.now() + SDK_LIMITS.lossAskMs;
    return async () => {
      if (this.#clock.now() < nextAt) return;
      nextAt = this.#clock.now() + SDK_LIMITS.lossAskMs;
      const error = await this.lossOf(id);
      if (error) throw error;
    };
  }

  #subscribe(): void {
    if (this.#isSubscribed) return;
    this.#isSubscribed = true;
    this.#bus.subscribe(
      LOST_FILTER,
      ({ data }) => this.#heard(data),
      () => {}, // credentials of an older platform: losses are found by asking
    );
  }

  #heard(data: Uint8Array): void {
    const notice = EdgeLostNotice.safeParse(jsonOrUndefined(data));
    if (!notice.success) return;
    const { edge } = notice.data;
    for (const listener of [...(this.#listeners.get(edge) ?? []), ...(this.#listeners.get('*') ?? [])]) listener(edge);
  }
}
