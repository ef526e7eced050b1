/**
 * One IAM process, as `node-runtime/roles/iam` lends quota: any number of them over one log. Opens a lease in the project that it pays
 * for and in each one above it, closes and settles in the order that production does; what is lent, to whom, and when a lease leaves
 * the books is decided by `actors/project`.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import { type LendingRequest, type LendingResponse, outlives } from '#bus/iam/quota-lending.ts';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { fits, leftOf, type QuotaAmounts, type QuotaKey, type QuotaLeaseId, times } from '#bus/project/quota.ts';
import type { ProjectCommand, ProjectEvent, ProjectState, QuotaLease, Usage } from '#bus/project/schema.ts';
import { readState } from '#bus/records.ts';
import { projectAddress } from '#bus/subjects.ts';
import { addMs, type DurationMs } from '#bus/units.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { Directory } from '#actors/project/directory.ts';
import { overQuota } from '#actors/project/lease.decider.ts';
import { LeaseEnds } from '#actors/project/lease-ends.ts';
import { QUOTA_LIMITS } from '#actors/project/limits.ts';
import { projectNode, type QuotaNode, sizeLease, usedOf } from '#actors/project/quota.ts';
import { ActorRunner } from './actor-runner.ts';
import { serve } from './ask.ts';
import { type Flow, start, until } from './flow.ts';
import { SimLedger } from './ledger.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Observer } from './observer.ts';
import type { Parts } from './parts.ts';
import type { Process } from './process.ts';

/** A project as whoever runs the platform has set it up. Ancestors nearest first. */
export type ProjectPlan = { readonly name: ProjectName; readonly ancestors: readonly ProjectName[]; readonly limits: QuotaAmounts };

export type IamOptions = {
  readonly process: Process;
  readonly shards: readonly Shard[];
  readonly projects: readonly ProjectPlan[];
  readonly parts: Parts;
  readonly observer: Observer;
  readonly onOver: () => void;
};
/** The project and all above it. */
type Chain = { readonly states: readonly ProjectState[]; readonly nodes: readonly QuotaNode[] };

const later = (retryAfterMs: number) => ({ outcome: 'later' as const, retryAfterMs: retryAfterMs as DurationMs });

export class SimIam {
  readonly #o: IamOptions;
  readonly #directory = new Directory();
  readonly #runner: ActorRunner<ProjectState, ProjectCommand, ProjectEvent, never>;
  readonly #ledger: SimLedger;
  readonly #ends = new LeaseEnds(QUOTA_LIMITS.leaseMs);
  readonly #settling = new Set<QuotaLeaseId>();

  constructor(options: IamOptions) {
    this.#o = options;
    const { process, parts, observer, shards } = options;
    this.#runner = new ActorRunner({
      process,
      definition: parts.project,
      host: parts.host(parts.project),
      onReply: (address, result) => observer.replied(address, result),
      onAdopted: (state, { commit }) => void this.#directory.learn(state, commit.version),
    });
    this.#ledger = new SimLedger(process, shards, parts.usage(), (stored) => this.#heard(stored));
  }

  start(): void {
    start(this.#begin(), (ok) => {
      if (!ok) return this.#o.onOver();
      const { process } = this.#o;
      serve<LendingRequest<'drawQuota'>, LendingResponse<'drawQuota'>>(process, 'iam.draw', (asked, answer) => start(this.#draw(asked), answer));
      serve<LendingRequest<'closeQuota'>, null>(process, 'iam.close', ({ project, leases }, answer) => {
        for (const id of leases) start(this.#settle(project, id));
        answer(null);
      });
      serve<LendingRequest<'confirmQuota'>, LendingResponse<'confirmQuota'>>(process, 'iam.confirm', (asked, answer) => start(this.#confirm(asked), answer));
      serve<LendingRequest<'inheritQuota'>, LendingResponse<'inheritQuota'>>(process, 'iam.inherit', (asked, answer) => answer(this.#inherit(asked)));
      process.every(HOST_LIMITS.quotaSettleMs, 'leases', () => this.#sweep());
    });
  }

  kill(): void {
    this.#o.process.kill();
    this.#runner.close();
  }

  *#begin(): Flow<boolean> {
    if (!(yield* this.#ledger.open())) return false;
    for (const { name, ancestors, limits } of this.#o.projects) {
      const made = yield* this.#try(name, { type: 'CreateProject', ancestors: [...ancestors], limits, owner: null });
      if (!made.ok) return false;
    }
    return true;
  }

  #heard(stored: StoredCommit): void {
    if (stored.commit.version <= this.#directory.versionOf(stored.address.project)) return;
    this.#directory.learn(readState('project', stored.commit.state, stored.commit.schema), stored.commit.version);
    this.#runner.adopt(stored);
  }

  *#draw({ project, holder, lease: id, each, count, prefetch }: LendingRequest<'drawQuota'>): Flow<LendingResponse<'drawQuota'>> {
    const chain = this.#chain(project);
    if (!chain) return { outcome: 'refused', error: wireError('FORBIDDEN', `there is no project ${project}; create it first`) };
    const size = sizeLease(chain.nodes, each, count, prefetch);
    if (size.kind === 'none') return { outcome: 'refused', error: refusal(chain.nodes, each) };
    if (size.kind === 'recall') {
      const { bus, link } = this.#o.process;
      bus.publish(link, 'quota.recall', [...new Set(chain.states.flatMap((state) => state.leases.map((lease) => lease.id)))]);
      return later(HOST_LIMITS.quotaRecallMs);
    }
    const granted = times(each, size.count);
    const expiresAt = addMs(this.#o.process.clock.now(), QUOTA_LIMITS.leaseMs as DurationMs);
    for (const { name } of chain.states) {
      const opened = yield* this.#try(name, { type: 'OpenLease', lease: { id, project, holder, granted, expiresAt }, usage: this.#usageOf(name) });
      if (opened.ok) continue;
      start(this.#settle(project, id));
      return later(HOST_LIMITS.quotaRaceMs);
    }
    const scarce = chain.nodes.some(({ limits }) => Object.keys(limits).length > 0);
    const error = size.count < count ? refusal((this.#chain(project) ?? chain).nodes, each) : null;
    return { outcome: 'lent', count: size.count, granted, lifeMs: QUOTA_LIMITS.leaseMs as DurationMs, scarce, error };
  }

  *#confirm({ project, requestId, lease, at }: LendingRequest<'confirmQuota'>): Flow<LendingResponse<'confirmQuota'>> {
    if (!(yield* this.#ledger.reach(at))) return later(HOST_LIMITS.quotaRaceMs);
    if (this.#ledger.fold.isAdmitted(requestId)) return { outcome: 'counted' };
    const chain = this.#chain(project);
    if (!chain) return { outcome: 'refused', error: wireError('FORBIDDEN', `there is no project ${project}`) };
    for (const { name } of chain.states) {
      const confirmed = yield* this.#try(name, { type: 'ConfirmCharge', requestId, lease, at, usage: this.#usageOf(name) });
      if (confirmed.ok) continue;
      return confirmed.error.code === 'QUOTA_EXCEEDED' ? { outcome: 'refused', error: confirmed.error } : later(HOST_LIMITS.quotaRaceMs);
    }
    return { outcome: 'counted' };
  }

  #chain(project: ProjectName): Chain | undefined {
    const states = this.#directory.chainOf(project);
    return states && { states, nodes: states.map((state) => projectNode(state, this.#usageOf(state.name))) };
  }

  #usageOf(project: ProjectName): Usage {
    const leases = (this.#directory.get(project)?.leases ?? []).map(({ id }) => id);
    return this.#ledger.fold.usageOf(this.#directory.subtreeOf(project), leases);
  }

  #inherit({ holder }: LendingRequest<'inheritQuota'>): LendingResponse<'inheritQuota'> {
    const left = this.#directory.all().flatMap(({ name, leases }) => leases.filter((one) => one.project === name && outlives(holder, one.holder)));
    for (const { project, id } of left) start(this.#settle(project, id));
    return { leases: left.length };
  }

  #sweep(): void {
    const projects = this.#directory.all();
    const over = this.#ends.seen(
      projects.flatMap(({ leases }) => leases.map(({ id }) => id)),
      this.#o.process.clock.monotonicMs(),
    );
    for (const { name, leases } of projects) for (const lease of leases) if (this.#isDue(name, lease, over)) start(this.#settle(lease.project, lease.id));
  }

  #isDue(project: ProjectName, { project: payer, id, status }: QuotaLease, over: ReadonlySet<QuotaLeaseId>): boolean {
    return payer === project ? status === 'closing' || over.has(id) : !this.#held(payer, id);
  }

  #held(project: ProjectName, id: QuotaLeaseId): QuotaLease | undefined {
    return this.#directory.get(project)?.leases.find((lease) => lease.id === id);
  }

  /** Every step may be repeated; one that fails is taken up by a later sweep. */
  *#settle(project: ProjectName, id: QuotaLeaseId): Flow<void> {
    if (this.#settling.has(id)) return;
    this.#settling.add(id);
    yield* this.#settleSteps(project, id);
    this.#settling.delete(id);
  }

  *#settleSteps(project: ProjectName, id: QuotaLeaseId): Flow<void> {
    if (!this.#held(project, id)) {
      const now = yield* this.#ledger.ends();
      if (!now || !(yield* this.#ledger.reach(now)) || this.#held(project, id)) return;
    }
    if (!(yield* this.#try(project, { type: 'CloseLease', id })).ok) return;
    if (this.#held(project, id)) {
      const fence = yield* this.#ledger.ends();
      if (!fence || !(yield* this.#ledger.reach(fence))) return;
      if (!(yield* this.#try(project, { type: 'SettleLease', id, fence })).ok) return;
    }
    const { ancestors = [], fence = {} } = this.#directory.get(project) ?? {};
    for (const above of ancestors) if (this.#held(above, id) && !(yield* this.#try(above, { type: 'SettleLease', id, fence })).ok) return;
  }

  *#try(project: ProjectName, command: ProjectCommand): Flow<CommandResult> {
    const commandId = `${project}:${command.type}:${this.#o.process.freshId()}`;
    const meta = { commandId, correlationId: commandId, principal: 'platform', at: this.#o.process.clock.now() };
    return yield* until<CommandResult>((done) => this.#runner.submit(projectAddress(project), command, meta, done));
  }
}

const refusal = (nodes: readonly QuotaNode[], each: QuotaAmounts): WireError => {
  for (const node of nodes) {
    const left = leftOf(node.limits, usedOf(node.usage));
    const key = (Object.keys(left) as QuotaKey[]).find((one) => fits({ [one]: left[one] }, each, 1) === 0);
    if (key) return overQuota(node, key);
  }
  return wireError('QUOTA_EXCEEDED', 'the quota has no room');
};
