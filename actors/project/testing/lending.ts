/**
 * A small world of quota: two projects one below the other, a job with a share of the lower one, several holders that die, one log
 * with commits that land late, and IAM reading it behind. Time and chance come from outside; the decisions are the real ones.
 */
import { outlives, quotaHolderName } from '#bus/iam/quota-lending.ts';
import type { EdgeName, JobId, ProjectName, RequestId, SandboxId } from '#bus/ids.ts';
import { isNothing, needOf, type Payer, payerKey, plus, type QuotaAmounts, times } from '#bus/project/quota.ts';
import type { ProjectCommand, ProjectEvent, ProjectState, ShareUse } from '#bus/project/schema.ts';
import { projectAddress, requestAddress, sandboxAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { spec } from '../../sandbox/testing/samples.ts';
import { fold } from '../../kernel/definition.ts';
import type { StoredCommit } from '../../ports/event-log.ts';
import { LeaseBook } from '../lease-book.ts';
import { projectDefinition } from '../project.definition.ts';
import { leasesOf, projectNode, shareNode, sizeLease } from '../quota.ts';
import { UsageFold } from '../usage.ts';
import { leaseId, T0 } from './samples.ts';

export const TOP = 'top' as ProjectName;
export const TEAM = 'team' as ProjectName;
const JOB = `jb-0-${'a'.repeat(32)}` as JobId;
/** Who creates: in the upper project, in the lower one, in the job of the lower one. */
export const PAYERS = { top: { project: TOP, job: undefined }, team: { project: TEAM, job: undefined }, job: { project: TEAM, job: JOB } } as const;
export const EACH = needOf(spec);
export const LEASE_MS = 100;
/** How much later IAM sees a lease in the books than its holder has asked for it. */
export const SEEN_LATER_MS = 50;

type Request = {
  readonly id: RequestId;
  readonly lease: string;
  readonly payer: Payer;
  readonly count: number;
  readonly holder: Holder;
  sequence: number;
  state: 'flying' | 'landed' | 'forwarded' | 'refused' | 'lost';
  live: number;
};
type Holder = { readonly place: string; life: number; book: LeaseBook; alive: boolean };

export class Lending {
  now = 0;
  readonly log: StoredCommit[] = [];
  readonly requests: Request[] = [];
  readonly holders: Holder[] = ['a', 'b', 'c'].map((place) => ({ place, life: 1, book: new LeaseBook(), alive: true }));
  readonly states = new Map<ProjectName, ProjectState>();
  usage = new UsageFold();
  #fences = new Map<string, number>();
  #next = 1;

  readonly #share: QuotaAmounts;

  constructor(topLimit: number, teamLimit: number, shareLimit = teamLimit) {
    this.#share = { sandboxes: shareLimit };
    this.decide(TOP, { type: 'CreateProject', ancestors: [], limits: { sandboxes: topLimit }, owner: null });
    this.decide(TEAM, { type: 'CreateProject', ancestors: [TOP], limits: { sandboxes: teamLimit }, owner: null });
  }

  decide(project: ProjectName, command: ProjectCommand): boolean {
    const state = this.states.get(project) ?? null;
    const decision = projectDefinition.decide(state, command, { address: projectAddress(project), at: (T0 + this.now) as TimestampMs });
    if (decision.kind === 'accept') this.states.set(project, fold<ProjectState, ProjectEvent>(projectDefinition, decision.events, state) as ProjectState);
    return decision.kind !== 'reject';
  }

  stateOf(project: ProjectName): ProjectState {
    return this.states.get(project) as ProjectState;
  }
  usageFor(project: ProjectName) {
    const projects = project === TOP ? [TOP, TEAM] : [TEAM];
    return this.usage.usageOf(
      projects,
      this.stateOf(project).leases.map(({ id }) => id),
    );
  }

  /** As its project's decision is told it; of a project above there is nothing to tell. */
  #shareFor(name: ProjectName, { project, job }: Payer): { share?: ShareUse } {
    if (!job || name !== project) return {};
    const leases = leasesOf(this.stateOf(name), job).map(({ id }) => id);
    return { share: { job, limits: this.#share, usage: this.usage.usageOf([payerKey({ project, job })], leases) } };
  }

  /** IAM lends to a holder, or calls back what others have not spent. */
  draw(holder: Holder, payer: Payer, count: number, prefetch: number): void {
    const { project, job } = payer;
    const chain = project === TEAM ? [TEAM, TOP] : [TOP];
    const { share } = this.#shareFor(project, payer);
    const projects = chain.map((name) => projectNode(this.stateOf(name), this.usageFor(name)));
    const size = sizeLease(share ? [shareNode(this.stateOf(project), share), ...projects] : projects, EACH, count, prefetch);
    if (size.kind === 'recall') for (const { book } of this.holders) book.recall([...this.states.values()].flatMap((s) => s.leases.map(({ id }) => id)));
    if (size.kind !== 'lend') return;
    const id = leaseId(this.#next++);
    const granted = times(EACH, size.count);
    const lease = {
      id,
      project,
      ...(job ? { job } : {}),
      holder: quotaHolderName(holder.place, holder.life),
      granted,
      expiresAt: (T0 + this.now + LEASE_MS) as TimestampMs,
    };
    for (const name of chain) if (!this.decide(name, { type: 'OpenLease', lease, usage: this.usageFor(name), ...this.#shareFor(name, payer) })) return;
    if (holder.alive) holder.book.add({ id, payer, granted, endsAt: this.now + LEASE_MS }, EACH, this.now);
  }

  /** Room is taken and the append goes out. Whether it ever lands is not known yet. */
  create(holder: Holder, payer: Payer, count: number): boolean {
    const taken = holder.alive ? holder.book.take(payer, EACH, count, this.now, true) : undefined;
    if (!taken) return false;
    const id = `rq-0-${this.#next.toString(16).padStart(32, '0')}` as RequestId;
    this.#next += 1;
    this.requests.push({ id, lease: taken.lease, payer, count: taken.count, holder, sequence: 0, state: 'flying', live: 0 });
    const items = Array.from({ length: taken.count }, () => ({ sandboxId: 'x' as SandboxId, edge: 'e' as EdgeName, attempt: 0, refusedBy: [], error: null }));
    const { project, job: share } = payer;
    this.#bodies.set(id, { id, project, spec: share ? { ...spec, share } : spec, deadlineAt: 1e15, quotaLease: taken.lease, items });
    return true;
  }
  readonly #bodies = new Map<RequestId, { project: ProjectName; [field: string]: unknown }>();

  /** The append becomes durable; a holder that lives hears of it at once or never before its lease has ended. */
  land(request: Request): void {
    if (request.state !== 'flying') return;
    const body = this.#bodies.get(request.id);
    if (!body) return;
    this.#append({ address: requestAddress(body.project, request.id), version: 1, state: body });
    request.sequence = this.log.length;
    request.state = 'landed';
  }

  /** The holder learns of its commit: in time it forwards; too late, or as the heir of a dead one, it asks first. */
  acknowledge(request: Request): void {
    if (request.state !== 'landed') return;
    const inTime = request.holder.alive && request.holder.book.committed(request.lease, EACH, 0, this.now);
    if (inTime || this.confirm(request) === 'counted') {
      request.state = 'forwarded';
      request.live = request.count;
    }
  }

  confirm(request: Request): 'counted' | 'later' {
    const { project } = request.payer;
    for (const name of project === TEAM ? [TEAM, TOP] : [TOP]) {
      const confirmed = this.decide(name, {
        type: 'ConfirmCharge',
        requestId: request.id,
        lease: request.lease,
        at: { '0': request.sequence },
        usage: this.usageFor(name),
        ...this.#shareFor(name, request.payer),
      });
      if (!confirmed) return 'later';
    }
    return 'counted';
  }

  /** One sandbox of a request ends, and the log says so. */
  end(request: Request): void {
    if (request.state !== 'forwarded' || request.live === 0) return;
    request.live -= 1;
    const { project } = request.payer;
    const id = `sb-0-${'0'.repeat(20)}-e` as SandboxId;
    const state = {
      id,
      project,
      requestId: request.id,
      index: request.live,
      attempt: 0,
      edge: 'e',
      generation: 1,
      status: 'stopped',
      spec: this.#bodies.get(request.id)?.['spec'],
    };
    this.#append({ address: sandboxAddress(project, id), version: 2, state });
  }

  /** A process is gone without a word. What it sent may land for ever after. */
  kill(holder: Holder): void {
    holder.alive = false;
  }
  /** The next life of the same place has closed what the dead one had borrowed, long before it ends. */
  restart(holder: Holder): void {
    Object.assign(holder, { book: new LeaseBook(), alive: true, life: holder.life + 1 });
    const name = quotaHolderName(holder.place, holder.life);
    for (const state of this.states.values())
      for (const lease of state.leases)
        if (lease.project === state.name && outlives(name, lease.holder)) this.decide(state.name, { type: 'CloseLease', id: lease.id });
  }

  /** IAM reads on; or starts anew from nothing. */
  read(upTo: number): void {
    for (const stored of this.log.slice(0, upTo)) this.usage.apply(stored);
  }
  restartIam(): void {
    this.usage = new UsageFold();
    this.#fences.clear();
  }

  /** One step of settlement of each lease: close, read the fence, settle from the leaf up. */
  settle(): void {
    const back = new Set(this.holders.flatMap(({ book, alive }) => (alive ? book.sweep(this.now, LEASE_MS) : [])).map(({ id }) => id));
    for (const state of this.states.values())
      for (const lease of state.leases) {
        if (lease.project !== state.name) {
          const below = this.stateOf(lease.project);
          if (!below.leases.some(({ id }) => id === lease.id)) this.decide(state.name, { type: 'SettleLease', id: lease.id, fence: below.fence });
        } else if (lease.status === 'open') {
          if (back.has(lease.id) || this.now >= lease.expiresAt - T0 + SEEN_LATER_MS) this.decide(state.name, { type: 'CloseLease', id: lease.id });
        } else if (!this.#fences.has(lease.id)) this.#fences.set(lease.id, this.log.length);
        else this.decide(state.name, { type: 'SettleLease', id: lease.id, fence: { '0': this.#fences.get(lease.id) ?? 0 } });
      }
  }

  /** Sandboxes that were really forwarded and have not ended. */
  live(of: Payer): number {
    return this.requests.reduce((n, r) => n + (isWithin(r.payer, of) ? r.live : 0), 0);
  }
  /** Really live outside open leases, and every open lease in full: Σ live + Σ unspent, from above. */
  committed(of: Payer): number {
    const { leases } = of.job ? { leases: leasesOf(this.stateOf(of.project), of.job) } : this.stateOf(of.project);
    const open = new Set(leases.map(({ id }) => id));
    const outside = this.requests.filter((r) => !open.has(r.lease) && isWithin(r.payer, of));
    return outside.reduce((n, r) => n + r.live, 0) + (leases.map(({ granted }) => granted).reduce(plus, {} as QuotaAmounts).sandboxes ?? 0);
  }
  isQuiet(): boolean {
    return [...this.states.values()].every(({ leases }) => leases.length === 0);
  }
  folded(of: Payer): QuotaAmounts {
    const { other, byLease } = of.job ? this.usage.usageOf([payerKey(of)], []) : this.usageFor(of.project);
    if (!isNothing(Object.values(byLease).reduce(plus, {}))) throw new Error('leases are open');
    return other;
  }

  #append({ address, version, state }: { address: StoredCommit['address']; version: number; state: object }): void {
    this.log.push({ address, sequence: this.log.length + 1, commit: { version, state } as unknown as StoredCommit['commit'] });
  }
}

/** Whether what one pays for counts in the other, too. */
const isWithin = (payer: Payer, of: Payer): boolean => of.project === TOP || (payer.project === of.project && (!of.job || payer.job === of.job));
