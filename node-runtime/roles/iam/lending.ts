/**
 * Lends quota to placements, and settles what they have borrowed. @paper §3.2
 *
 * A lease is opened in the project it pays for, then in each one above it, and handed out only when all have it; whatever
 * stops half-way is closed and settled by the sweep. Settlement: `closing` is committed, the end of the log is read (the
 * fence), the fold reads up to it, the lease leaves the books from the bottom up. Any process may do any step.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { encode } from '#bus/envelope.ts';
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import { type LendingRequest, type LendingResponse, outlives, type QuotaRecall } from '#bus/iam/quota-lending.ts';
import type { JobId, ProjectName } from '#bus/ids.ts';
import type { ProjectState, QuotaLease, ShareUse, Usage } from '#bus/project/schema.ts';
import { fits, leftOf, payerKey, type QuotaAmounts, type QuotaKey, type QuotaLeaseId, shareLimits, times } from '#bus/project/quota.ts';
import { readState } from '#bus/records.ts';
import { jobAddress, QUOTA_RECALL } from '#bus/subjects.ts';
import { addMs, type DurationMs } from '#bus/units.ts';
import { refusalOfMember } from '#actors/job/member.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { nameOf, overQuota } from '#actors/project/lease.decider.ts';
import { LeaseEnds } from '#actors/project/lease-ends.ts';
import { committedOf, leasesOf, projectNode, type QuotaNode, shareNode, sizeLease, usedOf } from '#actors/project/quota.ts';
import { QUOTA_LIMITS } from '#actors/project/limits.ts';
import type { Log } from '../../log/log.ts';
import type { Ledger } from './ledger.ts';
import { IAM_LIMITS } from './limits.ts';
import type { Projects } from './projects.ts';

export type LendingOptions = {
  readonly connection: NatsConnection;
  readonly projects: Projects;
  readonly ledger: Ledger;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
};

/** The project and all above it; `nodes` begin with a job's share of the first where one is asked for. */
type Chain = { readonly states: readonly ProjectState[]; readonly nodes: readonly QuotaNode[] };
type Share = Omit<ShareUse, 'usage'>;
const later = (retryAfterMs: number) => ({ outcome: 'later' as const, retryAfterMs: retryAfterMs as DurationMs });

export class Lending {
  readonly #o: LendingOptions;
  readonly #settling = new Set<string>();
  readonly #ends = new LeaseEnds(QUOTA_LIMITS.leaseMs);
  readonly #timer: NodeJS.Timeout;

  constructor(options: LendingOptions) {
    this.#o = options;
    this.#timer = setInterval(() => this.#sweep(), IAM_LIMITS.sweepMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async draw(asked: LendingRequest<'drawQuota'>): Promise<LendingResponse<'drawQuota'>> {
    const { project, job, holder, lease: id, each, count, prefetch } = asked;
    const share = job && (await this.#shareOf(project, job));
    if (share && 'code' in share) return { outcome: 'refused', error: share };
    let chain = this.#chain(project, share);
    if (!chain) return { outcome: 'refused', error: wireError('FORBIDDEN', `there is no project ${project}; create it first`) };
    let size = sizeLease(chain.nodes, each, count, prefetch);
    if (size.kind === 'none' || (size.kind === 'lend' && size.count < count)) {
      // "No room" is said of the log as it is after the question: what the asker has just ended makes room.
      await this.#o.ledger.reach(await this.#o.ledger.ends());
      chain = this.#chain(project, share) ?? chain;
      size = sizeLease(chain.nodes, each, count, prefetch);
    }
    if (size.kind === 'none') return { outcome: 'refused', error: refusal(chain.nodes, each) };
    if (size.kind === 'recall') {
      this.#recall(chain.states);
      return later(IAM_LIMITS.recallMs);
    }
    const granted = times(each, size.count);
    const expiresAt = addMs(this.#o.clock.now(), QUOTA_LIMITS.leaseMs as DurationMs);
    const lease: Omit<QuotaLease, 'status'> = { id, project, ...(job ? { job } : {}), holder, granted, expiresAt };
    for (const { name } of chain.states) {
      const opened = await this.#o.projects.try(name, { type: 'OpenLease', lease, ...this.#useOf(name, project, share) });
      if (opened.ok) continue;
      void this.#settle(project, id);
      return later(IAM_LIMITS.raceMs);
    }
    const scarce = chain.nodes.some((node) => Object.keys(node.limits).length > 0);
    const error = size.count < count ? refusal((this.#chain(project, share) ?? chain).nodes, each) : null;
    return { outcome: 'lent', count: size.count, granted, lifeMs: QUOTA_LIMITS.leaseMs as DurationMs, scarce, error };
  }

  async closeLeases({ project, leases }: LendingRequest<'closeQuota'>): Promise<LendingResponse<'closeQuota'>> {
    for (const id of leases) void this.#settle(project, id);
    return {};
  }

  inherit({ holder }: LendingRequest<'inheritQuota'>): LendingResponse<'inheritQuota'> {
    const left = this.#o.projects.directory.all().flatMap(({ name, leases }) => leases.filter((one) => one.project === name && outlives(holder, one.holder)));
    for (const { project, id } of left) void this.#settle(project, id);
    if (left.length > 0) this.#o.log.info('leases.inherited', { holder, leases: left.length });
    return { leases: left.length };
  }

  async confirm({ project, job, requestId, lease, at }: LendingRequest<'confirmQuota'>): Promise<LendingResponse<'confirmQuota'>> {
    await this.#o.ledger.reach(at);
    if (this.#o.ledger.fold.isAdmitted(requestId)) return { outcome: 'counted' };
    const share = job && (await this.#shareOf(project, job));
    if (share && 'code' in share) return { outcome: 'refused', error: share };
    const chain = this.#o.projects.directory.chainOf(project);
    if (!chain) return { outcome: 'refused', error: wireError('FORBIDDEN', `there is no project ${project}`) };
    for (const { name } of chain) {
      const confirmed = await this.#o.projects.try(name, { type: 'ConfirmCharge', requestId, lease, at, ...this.#useOf(name, project, share) });
      if (confirmed.ok) continue;
      return confirmed.error.code === 'QUOTA_EXCEEDED' ? { outcome: 'refused', error: confirmed.error } : later(IAM_LIMITS.raceMs);
    }
    return { outcome: 'counted' };
  }

  /** A job's share as the log has it; a refusal where nothing may be made for the job any more. */
  async #shareOf(project: ProjectName, job: JobId): Promise<Share | WireError> {
    const stored = await this.#o.eventLog.last(jobAddress(project, job));
    if (!stored) return refusalOfMember(job, null) as WireError;
    const state = readState('job', stored.commit.state, stored.commit.schema);
    return refusalOfMember(job, state) ?? { job, limits: shareLimits(state.spec.share) };
  }

  #chain(project: ProjectName, asked: Share | undefined): Chain | undefined {
    const states = this.#o.projects.directory.chainOf(project);
    const [own] = states ?? [];
    if (!states || !own) return undefined;
    const { share } = this.#useOf(project, project, asked);
    const projects = states.map((state) => projectNode(state, this.#usageOf(state.name)));
    return { states, nodes: share ? [shareNode(own, share), ...projects] : projects };
  }

  /** What a decision of one of the chain's projects has to know: its own use, and that of the share, which the nearest one keeps. */
  #useOf(name: ProjectName, payer: ProjectName, share: Share | undefined): { usage: Usage; share?: ShareUse } {
    const usage = this.#usageOf(name);
    const project = this.#o.projects.directory.get(name);
    if (name !== payer || !share || !project) return { usage };
    const leases = leasesOf(project, share.job).map(({ id }) => id);
    return { usage, share: { ...share, usage: this.#o.ledger.fold.usageOf([payerKey({ project: payer, job: share.job })], leases) } };
  }

  /** What a project and those below it use. */
  #usageOf(project: ProjectName): Usage {
    const { directory } = this.#o.projects;
    return this.#o.ledger.fold.usageOf(
      directory.subtreeOf(project),
      (directory.get(project)?.leases ?? []).map(({ id }) => id),
    );
  }

  /** Use of a project as people ask for it. */
  used(project: ProjectName): QuotaAmounts {
    return usedOf(this.#usageOf(project));
  }

  #recall(chain: readonly ProjectState[]): void {
    const leases = [...new Set(chain.flatMap((state) => state.leases.map(({ id }) => id)))];
    this.#o.connection.publish(QUOTA_RECALL, encode('recall', { v: 1, leases } satisfies QuotaRecall));
  }

  #sweep(): void {
    const projects = this.#o.projects.directory.all();
    const over = this.#ends.seen(
      projects.flatMap(({ leases }) => leases.map(({ id }) => id)),
      this.#o.clock.monotonicMs(),
    );
    for (const { name, leases } of projects) for (const lease of leases) if (this.#isDue(name, lease, over)) void this.#settle(lease.project, lease.id);
  }

  #isDue(project: ProjectName, { project: payer, id, status }: QuotaLease, over: ReadonlySet<QuotaLeaseId>): boolean {
    return payer === project ? status === 'closing' || over.has(id) : !this.#held(payer, id);
  }

  #held(project: ProjectName, id: QuotaLeaseId): QuotaLease | undefined {
    return this.#o.projects.directory.get(project)?.leases.find((lease) => lease.id === id);
  }

  /** Every step may be repeated; a step that fails is taken up by a later sweep. */
  async #settle(project: ProjectName, id: QuotaLeaseId): Promise<void> {
    if (this.#settling.has(id)) return;
    this.#settling.add(id);
    try {
      const { projects, ledger } = this.#o;
      // A record above may be known newer than the payer's own: that it holds no such lease is believed of all that was stored until now.
      if (!this.#held(project, id)) {
        await ledger.reach(await ledger.ends());
        if (this.#held(project, id)) return;
      }
      await projects.decide(project, { type: 'CloseLease', id });
      if (this.#held(project, id)) {
        const fence = await ledger.ends();
        await ledger.reach(fence);
        await projects.decide(project, { type: 'SettleLease', id, fence });
      }
      const { ancestors = [], fence = {} } = projects.directory.get(project) ?? {};
      for (const above of ancestors) if (this.#held(above, id)) await projects.decide(above, { type: 'SettleLease', id, fence });
    } catch (thrown) {
      this.#o.log.info('lease.unsettled', {
        project,
        lease: id,
        message: (thrown as Error).message,
        code: thrown instanceof DsecError ? thrown.code : 'INTERNAL',
      });
    } finally {
      this.#settling.delete(id);
    }
  }
}

/** Names the first limit, from the job's share upwards, that has no room for one more beside what is in use, or else what is lent. */
const refusal = (nodes: readonly QuotaNode[], each: QuotaAmounts): WireError => {
  for (const taken of [({ usage }: QuotaNode) => usedOf(usage), (node: QuotaNode) => committedOf(node, node.usage)])
    for (const node of nodes) {
      const left = leftOf(node.limits, taken(node));
      const key = (Object.keys(left) as QuotaKey[]).find((one) => fits({ [one]: left[one] }, each, 1) === 0);
      if (key && each[key] === undefined)
        return wireError('QUOTA_EXCEEDED', `${nameOf(node)} has a limit on ${key}; give the sandbox a limit of its own (limits.diskMiB)`, {
          retry: 'never',
        });
      if (key) return overQuota(node, key, taken(node));
    }
  return wireError('QUOTA_EXCEEDED', 'the quota has no room; end some sandboxes or have it raised');
};
