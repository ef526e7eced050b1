/**
 * Pauses or resumes a whole set, thousands at once: pages of commands go out, and each sandbox is told of when it is there or could
 * not be. @paper §6.3
 *
 * A time-out takes no command back. What is asked again under the same key changes nothing.
 */
import type { ManyItem as ToldItem, ManyVerb } from '#bus/api/many.ts';
import type { SandboxView } from '#bus/api/schema.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError, WireError } from '#bus/errors.ts';
import { type ClientKey, parseSandboxId, SandboxId } from '#bus/ids.ts';
import { API_LIMITS } from '#bus/limits.ts';
import { ENDED_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import { z } from 'zod';
import { forEachLimited } from './concurrency.ts';
import { SDK_LIMITS } from './limits.ts';
import type { Session } from './session.ts';
import { endedError, type SettleOptions } from './transition.ts';
import { randomKey } from './transport/clock.ts';

/** By ids, or every one of the project with these labels that this applies to; no labels: every one. */
export type Chosen = { readonly ids: readonly string[] } | { readonly labels: Readonly<Record<string, string>> };
/** What became of one; `state` is the newest that was seen, absent without waiting for it. */
export type ManyResult = { readonly id: SandboxId; readonly state?: SandboxState | undefined; readonly error?: DsecError | undefined };
export type ManyOptions = SettleOptions & { readonly key?: string | undefined };

const GOALS: Record<ManyVerb, { readonly reached: SandboxStatus; readonly event: string; readonly before: SandboxStatus }> = {
  pauseMany: { reached: 'paused', event: 'SandboxPaused', before: 'running' },
  resumeMany: { reached: 'running', event: 'SandboxResumed', before: 'paused' },
};

/** Results in the order in which they come. A command that was refused is a result, not a failure of the whole. */
export async function* toMany(session: Session, verb: ManyVerb, chosen: Chosen, options: ManyOptions = {}): AsyncGenerator<ManyResult> {
  const { signal, wait = true, timeoutMs = SDK_LIMITS.manyTimeoutMs } = options;
  const waiting = new Waiting(session, verb, session.clock.now() + timeoutMs, signal);
  for await (const items of pages(session, verb, chosen, options)) {
    for (const { id, decision, error } of items) {
      if (error) yield { id, error: new DsecError(error) };
      else if (wait) waiting.add(id, decision?.version ?? 0);
      else yield { id };
    }
    yield* await waiting.look();
  }
  yield* waiting.rest();
}

async function* pages(session: Session, verb: ManyVerb, chosen: Chosen, { key, signal }: ManyOptions): AsyncGenerator<readonly ToldItem[]> {
  const request = { key: (key ?? randomKey()) as ClientKey };
  if ('ids' in chosen) {
    const ids = z.array(SandboxId).safeParse(chosen.ids);
    if (!ids.success) throw invalid('INVALID_ARGUMENT', 'ids', ids.error);
    const unique = [...new Set(ids.data)];
    for (let at = 0; at < unique.length; at += API_LIMITS.manyPerPage)
      yield (await session.api.call(verb, { ...request, ids: unique.slice(at, at + API_LIMITS.manyPerPage) }, { signal })).items;
    return;
  }
  const labels = { ...chosen.labels };
  for (let after: string | null | undefined; after !== null; ) {
    const page = { ...request, labels, atLeast: session.seen, ...(after === undefined ? {} : { after }) };
    const { items, next } = await session.api.call(verb, page, { signal });
    yield items;
    after = next;
  }
}

/** Sandboxes whose node has decided, and that are not there yet. */
class Waiting {
  readonly #session: Session;
  readonly #goal: (typeof GOALS)[ManyVerb];
  readonly #verb: ManyVerb;
  readonly #giveUpAt: number;
  readonly #signal: AbortSignal | undefined;
  /** The version that the decision led to. */
  readonly #versions = new Map<SandboxId, number>();

  constructor(session: Session, verb: ManyVerb, giveUpAt: number, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#verb = verb;
    this.#goal = GOALS[verb];
    this.#giveUpAt = giveUpAt;
    this.#signal = signal;
  }

  add(id: SandboxId, version: number): void {
    this.#versions.set(id, version);
  }

  /** Looks once at every one that is not there yet. */
  async look(): Promise<readonly ManyResult[]> {
    const ids = [...this.#versions.keys()];
    const chunks = Array.from({ length: Math.ceil(ids.length / SDK_LIMITS.statesPerGet) }, (_, n) =>
      ids.slice(n * SDK_LIMITS.statesPerGet, (n + 1) * SDK_LIMITS.statesPerGet),
    );
    const results: ManyResult[] = [];
    await forEachLimited(chunks, SDK_LIMITS.chunksAsked, async (chunk) => {
      const { sandboxes } = await this.#session.api.call('get', { ids: chunk }, { signal: this.#signal });
      for (const [at, view] of sandboxes.entries()) {
        const result = await this.#resultOf(chunk[at] as SandboxId, view);
        if (result && this.#versions.delete(result.id)) results.push(result);
      }
    });
    return results;
  }

  /** What is left, as it comes; after the time is over, what did not come. */
  async *rest(): AsyncGenerator<ManyResult> {
    const { clock } = this.#session;
    let pauseMs: number = SDK_LIMITS.retryFirstMs;
    for (;;) {
      const results = await this.look();
      yield* results;
      if (this.#versions.size === 0) return;
      if (clock.now() >= this.#giveUpAt) break;
      pauseMs = results.length > 0 ? SDK_LIMITS.retryFirstMs : Math.min(pauseMs * 2, SDK_LIMITS.retryMaxMs);
      await clock.sleep(pauseMs, this.#signal);
    }
    for (const id of this.#versions.keys()) yield { id, error: this.#tooLate(id) };
  }

  async #resultOf(id: SandboxId, view: SandboxView | null | undefined): Promise<ManyResult | undefined> {
    if (!view) return { id, error: DsecError.of('SANDBOX_NOT_FOUND', `no sandbox ${id} in this project`) };
    const { state, version, streamSequence } = view;
    const since = this.#versions.get(id) ?? 0;
    this.#session.saw(parseSandboxId(id).shard, streamSequence);
    if (version < since) return undefined;
    if (state.status === this.#goal.reached) return { id, state };
    if (ENDED_STATUSES.has(state.status)) return { id, state, error: endedError(state) };
    // it is where it was: it came there again, or never left
    return state.status === this.#goal.before && version > since && since > 0 ? this.#pastOf(id, state, since) : undefined;
  }

  /** What happened meanwhile: it was there and somebody led it back, or it could not be. */
  async #pastOf(id: SandboxId, state: SandboxState, since: number): Promise<ManyResult> {
    const { commits } = await this.#session.api.call('events', { id, afterVersion: since - 1 }, { signal: this.#signal });
    const events = commits.flatMap((commit) => commit.events as readonly { readonly type: string; readonly error?: unknown }[]);
    if (events.some(({ type }) => type === this.#goal.event)) return { id, state };
    const error = WireError.safeParse(events.find(({ type }) => type === 'SandboxTransitionFailed')?.error);
    return { id, state, error: error.success ? new DsecError(error.data) : DsecError.of('INVALID_STATE', `${id} is ${state.status}`) };
  }

  #tooLate(id: SandboxId): DsecError {
    return DsecError.of('DEADLINE_EXCEEDED', `${this.#verb} of ${id} did not finish in time; the command is stored and goes on, ask again to wait for it`, {
      retry: 'same',
      details: { sandboxId: id },
    });
  }
}
