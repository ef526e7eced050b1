/**
 * The quota of one placement process: spends from the leases in its book, borrows more from IAM when they do not do, gives
 * back what it does not need. What it promises to whom is in the port (`actors/ports/quota.ts`).
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import { encode } from '#bus/envelope.ts';
import { DsecError, toWireError, type WireError } from '#bus/errors.ts';
import {
  LENDING,
  LendingAnswer,
  type LendingRequest,
  type LendingResponse,
  type LendingVerb,
  type QuotaHolderName,
  QuotaRecall,
} from '#bus/iam/quota-lending.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { Payer, QuotaAmounts, QuotaLeaseId } from '#bus/project/quota.ts';
import { shardOfRequest } from '#bus/ids.ts';
import { iamSubject, QUOTA_RECALL } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { ConfirmOutcome, Quota, Reservation, ReserveOutcome } from '#actors/ports/quota.ts';
import { LeaseBook, shapeOf, type Taken } from '#actors/project/lease-book.ts';
import { QUOTA_LIMITS } from '#actors/project/limits.ts';
import type { Log } from '../../log/log.ts';
import { PLACEMENT_LIMITS } from './limits.ts';

export type QuotaHolderOptions = { readonly connection: NatsConnection; readonly clock: Clock; readonly log: Log; readonly holder: QuotaHolderName };

type Drawn = { readonly outcome: 'lent'; readonly error: WireError | null } | Exclude<LendingResponse<'drawQuota'>, { outcome: 'lent' }>;
type Demand = { waiting: number; spent: number; since: number; drawing: Promise<Drawn> | undefined };

export class QuotaHolder implements Quota {
  readonly #o: QuotaHolderOptions;
  readonly #book = new LeaseBook();
  readonly #demands = new Map<string, Demand>();
  readonly #recalls: { unsubscribe(): void };
  readonly #timer: NodeJS.Timeout;
  /** How long an unused lease is kept: shorter where others may need it. */
  #idleMs: number = PLACEMENT_LIMITS.quotaIdleMs;

  constructor(options: QuotaHolderOptions) {
    this.#o = options;
    this.#recalls = options.connection.subscribe(QUOTA_RECALL, {
      callback: (error, message) => {
        const recall = error ? undefined : QuotaRecall.safeParse(JSON.parse(message.string()));
        if (!recall?.success) return;
        this.#book.recall(recall.data.leases);
        this.#giveBack();
      },
    });
    this.#timer = setInterval(() => this.#giveBack(), PLACEMENT_LIMITS.quotaSweepMs).unref();
  }

  async reserve(payer: Payer, each: QuotaAmounts, count: number): Promise<ReserveOutcome> {
    const demand = this.#demandOf(payer, each);
    demand.waiting += count;
    try {
      let orFewer: WireError | null = null;
      for (let attempt = 0; attempt < PLACEMENT_LIMITS.quotaAttempts; attempt += 1) {
        const taken = this.#book.take(payer, each, count, this.#o.clock.monotonicMs(), orFewer !== null);
        if (taken) {
          demand.spent += taken.count;
          return { outcome: 'reserved', reservation: this.#reservationOf(taken, each, taken.count < count ? orFewer : null) };
        }
        demand.drawing ??= this.#draw(payer, each, demand).finally(() => {
          demand.drawing = undefined;
        });
        const drawn = await demand.drawing;
        if (drawn.outcome !== 'lent') return drawn;
        orFewer = drawn.error;
      }
      return { outcome: 'later', retryAfterMs: PLACEMENT_LIMITS.quotaRetryMs };
    } finally {
      demand.waiting -= count;
    }
  }

  async confirm({ payer, id, lease, sequence }: Parameters<Quota['confirm']>[0]): Promise<ConfirmOutcome> {
    try {
      const answer = await this.#ask('confirmQuota', { v: 1, ...payer, requestId: id, lease, at: { [shardOfRequest(id)]: sequence } });
      if (answer.outcome === 'refused') return { outcome: 'exceeded', error: answer.error };
      return { outcome: answer.outcome, error: null };
    } catch (thrown) {
      this.#o.log.info('quota.unconfirmed', { ...payer, requestId: id, message: (thrown as Error).message });
      return { outcome: 'later', error: toWireError(thrown) };
    }
  }

  /** Has settled what the lives of this place before it had borrowed. Given up when their leases must be over anyway. Never rejects. */
  async inherit(): Promise<void> {
    const { clock, log, holder } = this.#o;
    for (const until = clock.monotonicMs() + QUOTA_LIMITS.leaseMs; clock.monotonicMs() < until && !this.#o.connection.isClosed(); ) {
      try {
        const { leases } = await this.#ask('inheritQuota', { v: 1, holder });
        log.info('quota.inherited', { holder, leases });
        return;
      } catch (thrown) {
        log.info('quota.not_inherited', { holder, message: (thrown as Error).message });
        await delay(PLACEMENT_LIMITS.quotaRetryMs);
      }
    }
  }

  /** Gives back what is undecided by nobody; the rest is settled when its leases end. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#recalls.unsubscribe();
    await this.#giveBack(0);
  }

  #demandOf(payer: Payer, each: QuotaAmounts): Demand {
    const shape = shapeOf(payer, each);
    const known = this.#demands.get(shape) ?? { waiting: 0, spent: 0, since: this.#o.clock.monotonicMs(), drawing: undefined };
    this.#demands.set(shape, known);
    return known;
  }

  /** One at a time for a payer and shape of need; asks for all who wait, and for what was spent lately. Never rejects. */
  async #draw(payer: Payer, each: QuotaAmounts, demand: Demand): Promise<Drawn> {
    await Promise.resolve(); // whoever asks in the same turn is counted
    const sentAt = this.#o.clock.monotonicMs();
    const prefetch = Math.max(PLACEMENT_LIMITS.quotaPrefetch, Math.ceil((demand.spent * PLACEMENT_LIMITS.quotaAheadMs) / Math.max(100, sentAt - demand.since)));
    Object.assign(demand, { spent: 0, since: sentAt });
    const id: QuotaLeaseId = `ql-${randomBytes(12).toString('hex')}`;
    try {
      const answer = await this.#ask('drawQuota', { v: 1, ...payer, holder: this.#o.holder, lease: id, each, count: Math.max(1, demand.waiting), prefetch });
      if (answer.outcome !== 'lent') return answer;
      this.#idleMs = answer.scarce ? PLACEMENT_LIMITS.quotaScarceIdleMs : PLACEMENT_LIMITS.quotaIdleMs;
      this.#book.add({ id, payer, granted: answer.granted, endsAt: sentAt + answer.lifeMs }, each, this.#o.clock.monotonicMs());
      return { outcome: 'lent', error: answer.error };
    } catch (thrown) {
      this.#o.log.info('quota.not_lent', { ...payer, message: (thrown as Error).message });
      return { outcome: 'later', retryAfterMs: PLACEMENT_LIMITS.quotaRetryMs as never };
    }
  }

  #reservationOf({ lease, count }: Taken, each: QuotaAmounts, error: WireError | null): Reservation {
    let decided = false;
    const once = () => {
      if (decided) throw new Error(`reservation of lease ${lease} was decided twice`);
      decided = true;
    };
    return {
      lease,
      count,
      error,
      committed: (placed) => {
        once();
        return this.#book.committed(lease, each, count - placed, this.#o.clock.monotonicMs());
      },
      cancel: () => {
        once();
        this.#book.cancelled(lease, each, count);
      },
    };
  }

  /** Best effort: what IAM does not hear of is settled when it ends. */
  async #giveBack(idleMs = this.#idleMs): Promise<void> {
    const back = new Map<ProjectName, QuotaLeaseId[]>();
    for (const { id, project } of this.#book.sweep(this.#o.clock.monotonicMs(), idleMs)) back.set(project, [...(back.get(project) ?? []), id]);
    await Promise.all(
      [...back].map(([project, leases]) =>
        this.#ask('closeQuota', { v: 1, project, leases }).catch((thrown: Error) =>
          this.#o.log.info('quota.not_given_back', { project, message: thrown.message }),
        ),
      ),
    );
  }

  async #ask<V extends LendingVerb>(verb: V, request: LendingRequest<V>): Promise<LendingResponse<V>> {
    try {
      const reply = await this.#o.connection.request(iamSubject(verb), encode(verb, request), { timeout: PLACEMENT_LIMITS.quotaAnswerMs });
      const answer = LendingAnswer.parse(JSON.parse(reply.string()));
      if (!answer.ok) throw new DsecError(answer.error);
      return LENDING[verb].response.parse(answer.data) as LendingResponse<V>;
    } catch (thrown) {
      if (thrown instanceof DsecError) throw thrown;
      const why = thrown instanceof errors.NoRespondersError ? 'no iam process answers' : (thrown as Error).message;
      throw DsecError.of('IAM_UNAVAILABLE', `${verb}: ${why}`, { cause: thrown });
    }
  }
}
