/**
 * Assembles the result of a group from states of its parent and of its chunks, in any order, twice or not at all. Pure data;
 * `group-waiter.ts` brings the news and asks for what is missing.
 *
 * - Versions order the news of one actor; older or equal ones are dropped.
 * - A settled item stays settled. A group that was given up settles every item at once.
 * - Nothing counts until the parent, or a chunk, has shown the hash that this create was answered with.
 */
import type { WireError } from '#bus/errors.ts';
import { chunkIdFor, type RequestId, type SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { chunkCount } from '#bus/request/group.ts';
import type { RequestState } from '#bus/request/schema.ts';

export type GroupItemOutcome = { readonly ok: true; readonly sandboxId: SandboxId } | { readonly ok: false; readonly error: WireError };
export type GroupAssemblyItem = { readonly index: number; sandboxId: SandboxId | null; outcome: GroupItemOutcome | null };
export type Chunk = { readonly n: number; readonly id: RequestId; version: number; open: number; newsAt: number };

export class GroupAssembly {
  readonly requestId: RequestId;
  readonly items: readonly GroupAssemblyItem[];
  readonly chunks: readonly Chunk[];
  /** The key was taken by another body; nothing of that request is ours. */
  conflict = false;
  /** Why an all-or-nothing group was given up. */
  abandoned: WireError | null = null;
  #parentVersion = 0;
  #bodyHash: string | undefined;
  #unsettled: number;

  constructor(requestId: RequestId, count: number, shardCount: number, now: number) {
    const size = WIRE_LIMITS.maxCreatesPerMessage;
    this.requestId = requestId;
    this.#unsettled = count;
    this.items = Array.from({ length: count }, (_, index) => ({ index, sandboxId: null, outcome: null }));
    this.chunks = Array.from({ length: chunkCount(count) }, (_, n) => ({
      n,
      id: chunkIdFor(requestId, n, shardCount),
      version: 0,
      open: Math.min(size, count - n * size),
      newsAt: now,
    }));
  }

  /** What the create was answered with. */
  expectBody(bodyHash: string): void {
    this.#bodyHash = bodyHash;
  }

  get done(): boolean {
    return this.#unsettled === 0;
  }

  /** Chunks with open items. */
  get pending(): readonly Chunk[] {
    return this.chunks.filter(({ open }) => open > 0);
  }

  /** Returns the items that are settled by this. */
  applyParent(version: number, state: RequestState): readonly GroupAssemblyItem[] {
    if (state.id !== this.requestId || version <= this.#parentVersion || !this.#trusts(state)) return [];
    this.#parentVersion = version;
    const { group } = state;
    if (group?.decision !== 'abandon' || !group.error || this.abandoned) return [];
    const error = group.error;
    this.abandoned = error;
    const open = this.items.filter(({ outcome }) => outcome === null);
    for (const item of open) this.#settle(item, { ok: false, error });
    return open;
  }

  /** Returns the items that are settled by this. */
  applyChunk(n: number, version: number, state: RequestState, now: number): readonly GroupAssemblyItem[] {
    const chunk = this.chunks[n];
    if (!chunk || state.id !== chunk.id || version <= chunk.version || !this.#trusts(state)) return [];
    chunk.version = version;
    chunk.newsAt = now;
    const settled: GroupAssemblyItem[] = [];
    for (const [index, news] of state.items.entries()) {
      const item = this.items[n * WIRE_LIMITS.maxCreatesPerMessage + index];
      if (!item || item.outcome) continue;
      item.sandboxId = news.sandboxId;
      if (news.error) this.#settle(item, { ok: false, error: news.error });
      else if (news.progress === 'run' && news.sandboxId) this.#settle(item, { ok: true, sandboxId: news.sandboxId });
      else continue;
      settled.push(item);
    }
    return settled;
  }

  /** Before the create is answered nothing can be told; what is missed then is asked for. */
  #trusts({ bodyHash, id }: RequestState): boolean {
    if (this.#bodyHash === undefined) return false;
    if (bodyHash !== this.#bodyHash && id === this.requestId) this.conflict = true;
    return bodyHash === this.#bodyHash;
  }

  #settle(item: GroupAssemblyItem, outcome: GroupItemOutcome): void {
    item.outcome = outcome;
    this.#unsettled -= 1;
    const chunk = this.chunks[Math.floor(item.index / WIRE_LIMITS.maxCreatesPerMessage)];
    if (chunk) chunk.open -= 1;
  }
}
