/**
 * A client of the platform: asks for groups of sandboxes under keys of its own, repeats what was not answered with the same key,
 * watches what is republished and asks now and then for what it may have missed, uses its sandboxes for a while, and ends them.
 */
import type { EdgeState } from '#bus/edge/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import type { WireError } from '#bus/errors.ts';
import { chunkIdFor, type ClientKey, type EdgeName, type JobId, type ProjectName, parseSandboxId, type RequestId, type SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { chunkCount, type GroupMode } from '#bus/request/group.ts';
import type { RequestState } from '#bus/request/schema.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { Cluster } from '../cluster.ts';
import type { ApiAnswer, SimApiserver } from '../hosts/apiserver.ts';
import { SimClient } from '../hosts/client.ts';
import type { Process } from '../hosts/process.ts';
import { TENANT_LIMITS } from './limits.ts';

export type GroupPlan = {
  readonly key: ClientKey;
  readonly count: number;
  readonly spec: SandboxSpec;
  readonly timeoutMs: number;
  /** How long each is used once it runs, by index; infinite: until everything ends. */
  readonly useMs: (index: number) => number;
  /** What is asked of a running one meanwhile, by index. */
  readonly asks: (index: number) => readonly { readonly afterMs: number; readonly command: SandboxBusCommand }[];
  readonly endBy: 'StopSandbox' | 'DeleteSandbox';
  readonly mode?: GroupMode;
  /** The job that they are members of: what remains of them when everything ends, the job ends. */
  readonly job?: JobId;
};
type ItemState = 'waiting' | 'running' | 'ending' | 'ended' | 'refused';
type Item = { readonly group: Group; readonly index: number; sandboxId: SandboxId | null; state: ItemState; generation: number };
type Group = {
  readonly plan: GroupPlan;
  readonly askedAtMs: number;
  requestId: RequestId | null;
  readonly versions: Map<string, number>;
  readonly items: Item[];
  left: number;
};

export type TenantEvents = {
  readonly running?: (latencyMs: number) => void;
  readonly ended?: (state: 'ended' | 'refused' | 'lost', error: WireError | null) => void;
};

/** `looksAgain`: asks for what it may have missed; off where nothing can be missed and there are hundreds of thousands to ask for. */
export type TenantOptions = { readonly looksAgain?: boolean };

export class Tenant {
  readonly project: ProjectName;
  readonly process: Process;
  readonly #cluster: Cluster;
  readonly #events: TenantEvents;
  readonly #looksAgain: boolean;
  readonly #groups = new Map<string, Group>();
  readonly #bySandbox = new Map<SandboxId, Item>();
  readonly #lost = new Map<EdgeName, number>();
  readonly #client: SimClient;
  #finishing = false;

  constructor(cluster: Cluster, process: Process, project: ProjectName, events: TenantEvents = {}, options: TenantOptions = {}) {
    this.#cluster = cluster;
    this.process = process;
    this.project = project;
    this.#events = events;
    this.#looksAgain = options.looksAgain ?? true;
    this.#client = new SimClient(process, (random) => cluster.someApiserver(random), TENANT_LIMITS.callMs);
    const hear = (news: { address: ActorAddress; commit: Commit }) => this.#hear(news);
    process.bus.subscribe(`out.${project}`, process.link, hear);
    process.bus.subscribe('out.system', process.link, hear);
    if (this.#looksAgain) process.every(TENANT_LIMITS.lookAgainMs, 'tenant looks', () => this.#lookAgain());
  }

  /** Items of which the end is not known yet. */
  get left(): number {
    let left = 0;
    for (const group of this.#groups.values()) left += group.left;
    return left;
  }

  create(plan: GroupPlan): void {
    if (this.#finishing) return;
    const group: Group = { plan, askedAtMs: this.process.clock.monotonicMs(), requestId: null, versions: new Map(), items: [], left: 0 };
    for (let index = 0; index < plan.count; index += 1) this.#extend(group, index);
    this.#groups.set(plan.key, group);
    this.#ask(group);
  }

  /** A key that was used before with another body must be refused, and change nothing. */
  misuse(plan: GroupPlan, done: (answer: ApiAnswer<unknown> | null) => void): void {
    this.#call((api, answer) => api.create({ ...plan, project: this.project }, answer), done);
  }

  /** Everything is to end: at once, or so many in each second, as long as it takes. */
  finish(perSecond = Number.POSITIVE_INFINITY): void {
    this.#finishing = true;
    const items = this.#running();
    const next = () => {
      for (let left = perSecond / TENANT_LIMITS.finishesPerSecond; left > 0; left -= 1) {
        const { value, done } = items.next();
        if (done) return;
        this.#end(value.group, value.index);
      }
      this.process.after(1_000 / TENANT_LIMITS.finishesPerSecond, 'tenant goes on ending', next);
    };
    next();
  }

  *#running(): Generator<Item, void> {
    for (const { items } of this.#groups.values()) for (const item of items) if (item.state === 'running' && !item.group.plan.job) yield item;
  }

  #ask(group: Group): void {
    if (group.requestId !== null) return;
    this.#call<{ requestId: RequestId }>(
      (api, answer) => api.create({ ...group.plan, project: this.project }, answer),
      (answer) => {
        if (answer?.ok) group.requestId = answer.value.requestId;
        else if (answer && answer.error.retry === 'never') this.#giveUp(group, answer.error);
        else this.process.after(TENANT_LIMITS.repeatMs, 'ask again', () => this.#ask(group));
      },
    );
  }

  #giveUp(group: Group, error: WireError): void {
    for (const item of group.items) this.#settle(group, item, 'refused', error);
  }

  #hear({ address, commit }: { address: ActorAddress; commit: Commit }): void {
    if (address.kind === 'request') this.#heardRequest(commit.state as unknown as RequestState, commit.version);
    else if (address.kind === 'sandbox') this.#heardSandbox(commit.state as unknown as SandboxState);
    else if (address.kind === 'edge') this.#heardEdge(commit.state as unknown as EdgeState);
  }

  #heardRequest({ id, key, items, chunkOf }: RequestState, version: number): void {
    const group = this.#groups.get(key);
    if (!group || version <= (group.versions.get(id) ?? 0)) return;
    group.versions.set(id, version);
    if (!chunkOf) group.requestId = id;
    const first = chunkOf?.first ?? 0;
    for (const [offset, { sandboxId, error }] of items.entries()) {
      const index = first + offset;
      this.#extend(group, index);
      const item = group.items[index];
      if (!item) continue;
      if (error) this.#settle(group, item, 'refused', error);
      else if (sandboxId && sandboxId !== item.sandboxId) {
        item.sandboxId = sandboxId;
        this.#bySandbox.set(sandboxId, item);
      }
    }
  }

  /** A request under the same key and another body may have been first: then the group is what that one asked for. */
  #extend(group: Group, index: number): void {
    if (group.items[index]) return;
    group.items.push({ group, index, sandboxId: null, state: 'waiting', generation: 0 });
    group.left += 1;
  }

  #heardSandbox({ id, status, generation, failure }: SandboxState): void {
    const item = this.#bySandbox.get(id);
    if (!item || item.sandboxId !== id) return;
    const { group, index } = item;
    item.generation = generation;
    if (status === 'stopped' || status === 'failed') this.#settle(group, item, 'ended', failure);
    else if (status === 'running' && item.state === 'waiting') this.#use(group, index, item);
    this.#checkLoss(group, item);
  }

  #heardEdge({ name, lostGeneration }: EdgeState): void {
    if (lostGeneration <= (this.#lost.get(name) ?? 0)) return;
    this.#lost.set(name, lostGeneration);
    for (const group of this.#groups.values()) if (group.left > 0) for (const item of group.items) this.#checkLoss(group, item);
  }

  /** The loss of a sandbox is derived from the loss of its Edge. */
  #checkLoss(group: Group, item: Item): void {
    if (!item.sandboxId || item.generation === 0) return;
    const lost = this.#lost.get(parseSandboxId(item.sandboxId).edge) ?? 0;
    if (item.generation <= lost) this.#settle(group, item, 'lost', null);
  }

  #use(group: Group, index: number, item: Item): void {
    item.state = 'running';
    this.#events.running?.(this.process.clock.monotonicMs() - group.askedAtMs);
    if (this.#finishing && !group.plan.job) return this.#end(group, index);
    const id = item.sandboxId as SandboxId;
    for (const [n, { afterMs, command }] of group.plan.asks(index).entries())
      this.process.after(afterMs, 'tenant asks', () => this.#lifecycle(id, command, `ask-${n}`, () => {}));
    const useMs = group.plan.useMs(index);
    if (useMs !== Number.POSITIVE_INFINITY) this.process.after(useMs, 'tenant ends', () => this.#end(group, index));
  }

  /** Asked again until it is known to have ended: the answer may be lost, the Edge may be away. */
  #end(group: Group, index: number, round = 0): void {
    const item = group.items[index];
    if (!item?.sandboxId || item.state === 'ended' || item.state === 'refused') return;
    item.state = 'ending';
    this.#lifecycle(item.sandboxId, ending(group.plan.endBy), `end-${round}`, (answer) => {
      const isGone = answer && !answer.ok && (answer.error.code === 'SANDBOX_ENDED' || answer.error.code === 'SANDBOX_NOT_FOUND');
      if (isGone) this.#settle(group, item, 'ended', null);
      else this.process.after(TENANT_LIMITS.endAgainMs, 'end again', () => this.#end(group, index, round + 1));
    });
  }

  #settle(group: Group, item: Item, state: 'ended' | 'refused' | 'lost', error: WireError | null): void {
    if (item.state === 'ended' || item.state === 'refused') return;
    item.state = state === 'refused' ? 'refused' : 'ended';
    if (item.sandboxId) this.#bySandbox.delete(item.sandboxId);
    group.left -= 1;
    if (group.left === 0 && !this.#looksAgain) this.#groups.delete(group.plan.key);
    this.#events.ended?.(state, error);
  }

  /** What was not heard is asked for. */
  #lookAgain(): void {
    for (const group of this.#groups.values()) {
      if (group.left === 0 || !group.requestId) continue;
      for (const requestId of group.versions.size > 0 ? group.versions.keys() : [group.requestId])
        this.#call<RequestState>(
          (api, answer) => api.request(this.project, requestId as RequestId, answer),
          (answer) => (answer?.ok ? this.#heardRequest(answer.value, (group.versions.get(requestId) ?? 0) + 1) : undefined),
        );
      this.#lookForChunks(group);
      for (const { sandboxId, state } of group.items) {
        if (!sandboxId || state === 'ended' || state === 'refused') continue;
        this.#call<SandboxState>(
          (api, answer) => api.sandbox(this.project, sandboxId, answer),
          (answer) => (answer?.ok ? this.#heardSandbox(answer.value) : undefined),
        );
      }
    }
  }

  /** Chunks of a group that were never heard of. */
  #lookForChunks({ requestId, plan, versions }: Group): void {
    if (!requestId || plan.count <= WIRE_LIMITS.maxCreatesPerMessage) return;
    for (let chunk = 0; chunk < chunkCount(plan.count); chunk += 1) {
      const id = chunkIdFor(requestId, chunk, this.#cluster.o.shards);
      if (versions.has(id)) continue;
      this.#call<RequestState>(
        (api, answer) => api.request(this.project, id, answer),
        (answer) => (answer?.ok ? this.#heardRequest(answer.value, 1) : undefined),
      );
    }
  }

  #lifecycle(id: SandboxId, command: SandboxBusCommand, key: string, done: (answer: ApiAnswer<unknown> | null) => void): void {
    this.#call<unknown>((api, answer) => api.lifecycle({ project: this.project, id, command, key }, answer), done);
  }

  #call<T>(ask: (api: SimApiserver, answer: (answer: ApiAnswer<T>) => void) => void, done: (answer: ApiAnswer<T> | null) => void): void {
    this.#client.call(ask, done);
  }
}

const ending = (type: GroupPlan['endBy']): SandboxBusCommand => (type === 'DeleteSandbox' ? { type } : { type, reason: 'requested' });
