/**
 * What the log says is in use, by project, job's share and lease: folded from the commits of requests, sandboxes and
 * Edges, in the order of their shards. Holds no truth: it is built anew from the newest commits at each start.
 *
 * An item of a request is in use from its assignment until its sandbox has ended, the request gives it up, its Edge is lost
 * with it, or no Edge has admitted it long after its deadline. Request and sandboxes share a shard, so an assignment is
 * seen before its sandbox; when folding begins in the middle, newest commits may come twice and are told by their version.
 */
import type { EdgeState } from '#bus/edge/schema.ts';
import type { EdgeName, RequestId } from '#bus/ids.ts';
import type { Positions, Usage } from '#bus/project/schema.ts';
import { isNothing, minus, needOf, type Payer, payerKey, payerOf, plus, type QuotaAmounts, type QuotaLeaseId } from '#bus/project/quota.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import type { StoredCommit } from '../ports/event-log.ts';
import { QUOTA_LIMITS } from './limits.ts';

type Item = { attempt: number; edge: EdgeName /** Null until an Edge has admitted it. */; generation: number | null };
type Request = {
  readonly payer: Payer;
  readonly lease: QuotaLeaseId | '';
  readonly each: QuotaAmounts;
  readonly deadlineAt: number;
  version: number;
  readonly items: Map<number, Item>;
};

export class UsageFold {
  readonly #requests = new Map<string, Request>();
  /** Requests with an item that no Edge has admitted yet. */
  readonly #waiting = new Set<string>();
  readonly #byEdge = new Map<EdgeName, Set<string>>();
  /** By project, and once more by job's share; see `payerKey`. */
  readonly #counts = new Map<string, Map<QuotaLeaseId | '', QuotaAmounts>>();
  readonly #asOf: Record<string, number> = {};

  get asOf(): Positions {
    return { ...this.#asOf };
  }

  /** Everything up to `sequence` of the shard has been applied. */
  reached(shard: string, sequence: number): void {
    if (sequence > (this.#asOf[shard] ?? 0)) this.#asOf[shard] = sequence;
  }

  /** Commits of a shard in their order; one that lies below what was reached is left out. */
  apply(stored: StoredCommit): void {
    if (stored.sequence > (this.#asOf[stored.address.shard] ?? 0)) this.take(stored);
    this.reached(stored.address.shard, stored.sequence);
  }

  /** A newest commit, as found when folding begins: requests first. */
  take({ address, commit }: StoredCommit): void {
    if (address.kind === 'request') this.#onRequest(commit.state as unknown as RequestState, commit.version);
    else if (address.kind === 'sandbox') this.#onSandbox(commit.state as unknown as SandboxState);
    else if (address.kind === 'edge') this.#onEdge(commit.state as unknown as EdgeState);
  }

  /** Items that were never admitted and never will be. */
  expire(now: number): void {
    for (const id of this.#waiting) {
      const request = this.#requests.get(id);
      if (request && request.deadlineAt + QUOTA_LIMITS.admissionGraceMs > now) continue;
      for (const [index, item] of request?.items ?? []) if (item.generation === null) this.#remove(id, index);
      this.#waiting.delete(id);
      this.#prune(id);
    }
  }

  /** Use of these projects, or job's shares, together; `leases` are told apart, all others are one sum. */
  usageOf(payers: Iterable<string>, leases: Iterable<QuotaLeaseId>): Usage {
    const wanted = new Set<string>(leases);
    const byLease: Record<QuotaLeaseId, QuotaAmounts> = {};
    let other: QuotaAmounts = {};
    for (const payer of payers)
      for (const [lease, used] of this.#counts.get(payer) ?? []) {
        if (wanted.has(lease)) byLease[lease] = plus(byLease[lease] ?? {}, used);
        else other = plus(other, used);
      }
    return { asOf: this.asOf, byLease, other };
  }

  /** Whether an Edge has admitted anything of it: then it was forwarded, and what is forwarded counts. */
  isAdmitted(id: RequestId): boolean {
    return [...(this.#requests.get(id)?.items.values() ?? [])].some(({ generation }) => generation !== null);
  }

  get requests(): number {
    return this.#requests.size;
  }

  #onRequest(state: RequestState, version: number): void {
    const known = this.#requests.get(state.id);
    if (known && version <= known.version) return;
    const request: Request = known ?? {
      payer: payerOf(state.project, state.spec),
      lease: state.quotaLease ?? '',
      each: needOf(state.spec),
      deadlineAt: state.deadlineAt,
      version,
      items: new Map(),
    };
    request.version = version;
    this.#requests.set(state.id, request);
    for (const [index, { edge, attempt, error }] of state.items.entries()) {
      const item = request.items.get(index);
      if (error || !edge) this.#remove(state.id, index);
      else if (!item && !known) this.#add(state.id, request, index, { attempt, edge, generation: null });
      else if (item && attempt > item.attempt) {
        this.#byEdge.get(item.edge)?.delete(keyOf(state.id, index));
        Object.assign(item, { attempt, edge, generation: null });
        this.#note(state.id, index, item);
      }
    }
    this.#prune(state.id);
  }

  #onSandbox(state: SandboxState): void {
    const { requestId, index, attempt, edge, generation, status } = state;
    const request = this.#requests.get(requestId);
    const item = request?.items.get(index);
    if (ENDED_STATUSES.has(status)) {
      if (item && attempt >= item.attempt) this.#remove(requestId, index);
    } else if (item) {
      if (attempt >= item.attempt) Object.assign(item, { attempt, generation });
    } else {
      // Its request was forgotten before it ended, or it was admitted after all.
      const orphan = request ?? {
        payer: payerOf(state.project, state.spec),
        lease: '' as const,
        each: needOf(state.spec),
        deadlineAt: 0,
        version: 0,
        items: new Map(),
      };
      this.#requests.set(requestId, orphan);
      this.#add(requestId, orphan, index, { attempt, edge, generation });
    }
    this.#prune(requestId);
  }

  /** Loss of its sandboxes is derived from the loss of their Edge. */
  #onEdge({ name, status, generation, lostGeneration }: EdgeState): void {
    const gone = status === 'retired' ? generation : lostGeneration;
    if (gone === 0) return;
    for (const key of [...(this.#byEdge.get(name) ?? [])]) {
      const [id, index] = key.split(' ') as [string, string];
      const item = this.#requests.get(id)?.items.get(Number(index));
      if (item && item.generation !== null && item.generation <= gone) this.#remove(id, Number(index));
      this.#prune(id);
    }
  }

  #prune(id: string): void {
    if (this.#requests.get(id)?.items.size !== 0) return;
    this.#requests.delete(id);
    this.#waiting.delete(id);
  }

  #add(id: string, request: Request, index: number, item: Item): void {
    request.items.set(index, item);
    this.#note(id, index, item);
    this.#count(request, plus);
  }

  #note(id: string, index: number, item: Item): void {
    if (item.generation === null) this.#waiting.add(id);
    const onEdge = this.#byEdge.get(item.edge) ?? new Set();
    onEdge.add(keyOf(id, index));
    this.#byEdge.set(item.edge, onEdge);
  }

  #remove(id: string, index: number): void {
    const request = this.#requests.get(id);
    const item = request?.items.get(index);
    if (!request || !item) return;
    request.items.delete(index);
    this.#byEdge.get(item.edge)?.delete(keyOf(id, index));
    this.#count(request, minus);
  }

  #count({ payer, lease, each }: Request, how: (a: QuotaAmounts, b: QuotaAmounts) => QuotaAmounts): void {
    for (const key of new Set([payer.project, payerKey(payer)])) {
      const byLease = this.#counts.get(key) ?? new Map<QuotaLeaseId | '', QuotaAmounts>();
      const sum = how(byLease.get(lease) ?? {}, each);
      if (isNothing(sum)) byLease.delete(lease);
      else byLease.set(lease, sum);
      if (byLease.size > 0) this.#counts.set(key, byLease);
      else this.#counts.delete(key);
    }
  }
}

const keyOf = (id: string, index: number): string => `${id} ${index}`;
