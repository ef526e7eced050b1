/**
 * Assembles the result of one create from what arrives about it, in any order, twice or not at all: states of the
 * request actor and states of its sandboxes. Pure data; `create-waiter.ts` brings the news and asks for what is missing.
 *
 * - The newest attempt of an item counts. News of an older attempt is dropped.
 * - Versions order the news of one actor; older or equal ones are dropped.
 * - A sandbox's state names its request, index and attempt, so it may arrive before the assignment does.
 * - A settled item stays settled.
 * - A key that the caller chose may name a request with another body: nothing counts until the request actor has shown
 *   the hash that this create was answered with.
 */
import type { WireError } from '#bus/errors.ts';
import type { EdgeName, RequestId, SandboxId } from '#bus/ids.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { outcomeOf } from '#bus/sandbox/outcome.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';

export type ItemOutcome = { readonly ok: true; readonly state: SandboxState } | { readonly ok: false; readonly error: WireError };

export type Item = {
  readonly index: number;
  attempt: number;
  edge: EdgeName | null;
  sandboxId: SandboxId | null;
  /** Newest version seen of that sandbox; 0 before the first. */
  version: number;
  /** When anything new was heard of this item. */
  newsAt: number;
  outcome: ItemOutcome | null;
};

export class Assembly {
  readonly requestId: RequestId;
  readonly items: readonly Item[];
  /** The key was taken by another body; nothing of that request is ours. */
  conflict = false;
  #trusted: boolean;
  #bodyHash: string | undefined;
  #requestVersion = 0;
  #unsettled: number;

  constructor(requestId: RequestId, count: number, now: number, keyMayBeTaken = false) {
    this.requestId = requestId;
    this.#trusted = !keyMayBeTaken;
    this.#unsettled = count;
    this.items = Array.from({ length: count }, (_, index) => ({ index, attempt: -1, edge: null, sandboxId: null, version: 0, newsAt: now, outcome: null }));
  }

  /** What the create was answered with. */
  expectBody(bodyHash: string): void {
    this.#bodyHash = bodyHash;
  }

  get done(): boolean {
    return this.#unsettled === 0;
  }

  get pending(): readonly Item[] {
    return this.items.filter((item) => item.outcome === null);
  }

  /** Returns the items whose sandbox is new or that are settled by this. */
  applyRequest(version: number, state: RequestState, now: number): readonly Item[] {
    if (state.id !== this.requestId || version <= this.#requestVersion || !this.#trusts(state)) return [];
    this.#requestVersion = version;
    const changed: Item[] = [];
    for (const [index, news] of state.items.entries()) {
      const item = this.items[index];
      if (!item || item.outcome || news.attempt < item.attempt) continue;
      if (news.error) {
        this.#settle(item, { ok: false, error: news.error }, now);
        changed.push(item);
      } else if (news.sandboxId && news.sandboxId !== item.sandboxId) {
        this.#moveTo(item, news.attempt, news.sandboxId, news.edge, now);
        changed.push(item);
      }
    }
    return changed;
  }

  /** Returns the item when this is news of it. A loss is news after the commit that it follows, and has no version of its own. */
  applySandbox(version: number, state: SandboxState, now: number, lost = false): Item | undefined {
    const item = this.#trusted ? this.items[state.index] : undefined;
    if (!item || item.outcome || state.requestId !== this.requestId || state.attempt < item.attempt) return undefined;
    if (state.id !== item.sandboxId) this.#moveTo(item, state.attempt, state.id, state.edge, now);
    if (lost ? version < item.version : version <= item.version) return undefined;
    item.version = version;
    item.newsAt = now;
    const outcome = outcomeOf(state);
    if (outcome) this.#settle(item, outcome, now);
    return item;
  }

  #trusts(state: RequestState): boolean {
    if (this.#trusted || this.#bodyHash === undefined) return this.#trusted;
    this.#trusted = state.bodyHash === this.#bodyHash;
    this.conflict = !this.#trusted;
    return this.#trusted;
  }

  #moveTo(item: Item, attempt: number, sandboxId: SandboxId, edge: EdgeName | null, now: number): void {
    item.attempt = attempt;
    item.sandboxId = sandboxId;
    item.edge = edge;
    item.version = 0;
    item.newsAt = now;
  }

  #settle(item: Item, outcome: ItemOutcome, now: number): void {
    item.outcome = outcome;
    item.newsAt = now;
    this.#unsettled -= 1;
  }
}
