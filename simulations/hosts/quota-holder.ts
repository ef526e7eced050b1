/**
 * The quota of one placement process, as `roles/placement/quota-holder.ts` and `spending.ts` keep it: room out of the leases in its book
 * before a choice is committed, certainty that a commit counts before anything of it is forwarded.
 */
import { wireError, type WireError } from '#bus/errors.ts';
import type { LendingRequest, LendingResponse, QuotaHolderName } from '#bus/iam/quota-lending.ts';
import { type ProjectName, shardOfRequest } from '#bus/ids.ts';
import { needOf, type Payer, payerOf, type QuotaAmounts, type QuotaLeaseId } from '#bus/project/quota.ts';
import type { RequestState, ReservedQuota } from '#bus/request/schema.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import { type LeaseBook, shapeOf, type Taken } from '#actors/project/lease-book.ts';
import { QUOTA_LIMITS } from '#actors/project/limits.ts';
import { Asker } from './ask.ts';
import { type Flow, start, until } from './flow.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

export type Room = { readonly quota: ReservedQuota; readonly taken: Taken | null; readonly each: QuotaAmounts };
type Held = { readonly state: RequestState; readonly sequence: number };
type Drawn = { readonly outcome: 'lent'; readonly error: WireError | null } | Exclude<LendingResponse<'drawQuota'>, { outcome: 'lent' }>;
type Demand = { waiting: number; spent: number; since: number; drawing: ((drawn: Drawn) => void)[] | null };

export class SimQuotaHolder {
  readonly #process: Process;
  readonly #holder: QuotaHolderName;
  readonly #book: LeaseBook;
  readonly #asker: Asker;
  readonly #demands = new Map<string, Demand>();
  #idleMs: number = HOST_LIMITS.quotaIdleMs;

  /** `holder` names a place and the how-manieth life of it this is. */
  constructor(process: Process, book: LeaseBook, holder: QuotaHolderName) {
    this.#process = process;
    this.#holder = holder;
    this.#book = book;
    this.#asker = new Asker(process);
    process.bus.subscribe<QuotaLeaseId[]>('quota.recall', process.link, (leases) => {
      book.recall(leases);
      this.#giveBack();
    });
    process.every(HOST_LIMITS.quotaSweepMs, 'give back', () => this.#giveBack());
  }

  /** Room for as many as there is; a number: ask again after so many milliseconds. */
  *roomFor({ project, spec, count }: { readonly project: ProjectName; readonly spec: SandboxSpec; readonly count: number }): Flow<Room | number> {
    const each = needOf(spec);
    const payer = payerOf(project, spec);
    const demand = this.#demandOf(payer, each);
    demand.waiting += count;
    const room = yield* this.#reserve(payer, each, count, demand);
    demand.waiting -= count;
    return room;
  }

  *#reserve(payer: Payer, each: QuotaAmounts, count: number, demand: Demand): Flow<Room | number> {
    let orFewer: WireError | null = null;
    for (let attempt = 0; attempt < HOST_LIMITS.quotaAttempts; attempt += 1) {
      const taken = this.#book.take(payer, each, count, this.#process.clock.monotonicMs(), orFewer !== null);
      if (taken) {
        demand.spent += taken.count;
        return { quota: { lease: taken.lease, count: taken.count, error: taken.count < count ? orFewer : null }, taken, each };
      }
      const drawn = yield* until<Drawn>((done) => this.#draw(payer, each, demand, done));
      if (drawn.outcome === 'later') return drawn.retryAfterMs;
      if (drawn.outcome === 'refused') return { quota: { lease: null, count: 0, error: drawn.error }, taken: null, each };
      orFewer = drawn.error;
    }
    return HOST_LIMITS.quotaRetryMs;
  }

  /** After the decision: null for what is known to count; an error that is final: it does not; one to try again: nobody knows yet. */
  *settle(room: Room | null, result: CommandResult, held: Held | null): Flow<WireError | null> {
    const taken = room?.taken ?? null;
    const now = this.#process.clock.monotonicMs();
    if (taken && room) {
      const isOurs = result.ok && held !== null && held.state.quotaLease === taken.lease;
      if (!isOurs) this.#book.cancelled(taken.lease, room.each, taken.count);
      else if (this.#book.committed(taken.lease, room.each, taken.count - held.state.items.filter(({ error }) => !error).length, now)) return null;
    }
    if (!result.ok || !held?.state.quotaLease || held.state.items.every(({ error }) => error)) return null;
    const { project, spec, id, quotaLease: lease } = held.state;
    const asked: LendingRequest<'confirmQuota'> = { v: 1, ...payerOf(project, spec), requestId: id, lease, at: { [shardOfRequest(id)]: held.sequence } };
    const answer = yield* until<LendingResponse<'confirmQuota'> | null>((done) => this.#asker.ask('iam.confirm', asked, HOST_LIMITS.quotaAnswerMs, done));
    if (answer?.outcome === 'refused') return answer.error;
    return answer?.outcome === 'counted' ? null : wireError('IAM_UNAVAILABLE', `whether request ${id} has room is not known yet`);
  }

  /** Has settled what the lives of this place before it had borrowed; given up when their leases must be over anyway. */
  inherit(untilMs = this.#process.clock.monotonicMs() + QUOTA_LIMITS.leaseMs): void {
    this.#asker.ask('iam.inherit', { v: 1, holder: this.#holder }, HOST_LIMITS.quotaAnswerMs, (answer) => {
      if (answer || this.#process.clock.monotonicMs() >= untilMs) return;
      this.#process.after(HOST_LIMITS.quotaRetryMs, 'inherit again', () => this.inherit(untilMs));
    });
  }

  #demandOf(payer: Payer, each: QuotaAmounts): Demand {
    const shape = shapeOf(payer, each);
    const known = this.#demands.get(shape) ?? { waiting: 0, spent: 0, since: this.#process.clock.monotonicMs(), drawing: null };
    this.#demands.set(shape, known);
    return known;
  }

  /** One at a time for a payer and shape of need; whoever comes meanwhile waits for the same answer. */
  #draw(payer: Payer, each: QuotaAmounts, demand: Demand, done: (drawn: Drawn) => void): void {
    if (demand.drawing) return void demand.drawing.push(done);
    demand.drawing = [done];
    start(this.#drawOnce(payer, each, demand), (drawn) => {
      const waiting = demand.drawing ?? [];
      demand.drawing = null;
      for (const tell of waiting) tell(drawn);
    });
  }

  *#drawOnce(payer: Payer, each: QuotaAmounts, demand: Demand): Flow<Drawn> {
    const { clock } = this.#process;
    const sentAt = clock.monotonicMs();
    const prefetch = Math.max(HOST_LIMITS.quotaPrefetch, Math.ceil((demand.spent * HOST_LIMITS.quotaAheadMs) / Math.max(100, sentAt - demand.since)));
    Object.assign(demand, { spent: 0, since: sentAt });
    const lease: QuotaLeaseId = `ql-${this.#process.freshId()}${this.#process.freshId().slice(0, 8)}`;
    const asked: LendingRequest<'drawQuota'> = { v: 1, ...payer, holder: this.#holder, lease, each, count: Math.max(1, demand.waiting), prefetch };
    const answer = yield* until<LendingResponse<'drawQuota'> | null>((done) => this.#asker.ask('iam.draw', asked, HOST_LIMITS.quotaAnswerMs, done));
    if (!answer) return { outcome: 'later', retryAfterMs: HOST_LIMITS.quotaRetryMs as never };
    if (answer.outcome !== 'lent') return answer;
    this.#idleMs = answer.scarce ? HOST_LIMITS.quotaScarceIdleMs : HOST_LIMITS.quotaIdleMs;
    this.#book.add({ id: lease, payer, granted: answer.granted, endsAt: sentAt + answer.lifeMs }, each, clock.monotonicMs());
    return { outcome: 'lent', error: answer.error };
  }

  /** Best effort: what IAM does not hear of is settled when it ends. */
  #giveBack(): void {
    const back = new Map<ProjectName, QuotaLeaseId[]>();
    for (const { id, project } of this.#book.sweep(this.#process.clock.monotonicMs(), this.#idleMs)) back.set(project, [...(back.get(project) ?? []), id]);
    for (const [project, leases] of back) this.#asker.ask('iam.close', { v: 1, project, leases }, HOST_LIMITS.quotaAnswerMs, () => {});
  }
}
