/**
 * What one process has borrowed and not spent: the holder's side of quota leases. Kept in memory only; when the process
 * dies, IAM settles its leases from the log. No clock inside: `now` is the process's own monotonic time.
 *
 * INV-SPEND: what is taken from a lease never exceeds what was granted. A lease is given back only when nothing taken from
 * it is undecided, so that nothing is committed under it afterwards.
 */
import type { ProjectName } from '#bus/ids.ts';
import { minus, type Payer, payerKey, plus, type QuotaAmounts, type QuotaKey, type QuotaLeaseId, times } from '#bus/project/quota.ts';

type Held = {
  readonly id: QuotaLeaseId;
  readonly project: ProjectName;
  readonly shape: string;
  readonly endsAt: number;
  left: QuotaAmounts;
  /** Takings that are neither committed nor cancelled. */
  undecided: number;
  usedAt: number;
  /** Nothing more is taken from it. */
  retired: boolean;
};

export type Taken = { readonly lease: QuotaLeaseId; readonly count: number };

/** Needs of one shape name the same keys; a lease serves one shape of one project, or of one job's share in it. */
export const shapeOf = (payer: Payer, each: QuotaAmounts): string => `${payerKey(payer)} ${Object.keys(each).sort().join(' ')}`;

export class LeaseBook {
  readonly #held = new Map<QuotaLeaseId, Held>();

  add(
    lease: { readonly id: QuotaLeaseId; readonly payer: Payer; readonly granted: QuotaAmounts; readonly endsAt: number },
    each: QuotaAmounts,
    now: number,
  ): void {
    const { id, payer, granted, endsAt } = lease;
    this.#held.set(id, { id, project: payer.project, shape: shapeOf(payer, each), endsAt, left: granted, undecided: 0, usedAt: now, retired: false });
  }

  /** Room for `count` items out of one lease, or for as many as it has when `orFewer`; undefined: borrow more. */
  take(payer: Payer, each: QuotaAmounts, count: number, now: number, orFewer = false): Taken | undefined {
    const shape = shapeOf(payer, each);
    for (const held of this.#held.values()) {
      if (held.shape !== shape || held.retired || now >= held.endsAt) continue;
      const n = Math.min(count, timesIn(held.left, each));
      if (n === 0 || (n < count && !orFewer)) continue;
      held.left = minus(held.left, times(each, n));
      held.undecided += 1;
      held.usedAt = now;
      return { lease: held.id, count: n };
    }
    return undefined;
  }

  /** `unused` of the taken items return. False: the lease had ended before the commit was known to be durable. */
  committed(lease: QuotaLeaseId, each: QuotaAmounts, unused: number, now: number): boolean {
    const held = this.#decided(lease, each, unused);
    return held !== undefined && now < held.endsAt;
  }

  cancelled(lease: QuotaLeaseId, each: QuotaAmounts, count: number): void {
    this.#decided(lease, each, count);
  }

  /** Takes no more from these: another needs what they have left. */
  recall(ids: readonly QuotaLeaseId[]): void {
    for (const id of ids) {
      const held = this.#held.get(id);
      if (held) held.retired = true;
    }
  }

  /** Retires what has ended, what is used up, and what nobody has used for `idleMs`; answers with those to give back now. */
  sweep(now: number, idleMs: number): { readonly id: QuotaLeaseId; readonly project: ProjectName }[] {
    const back: { id: QuotaLeaseId; project: ProjectName }[] = [];
    for (const held of this.#held.values()) {
      if (now >= held.endsAt || held.usedAt + idleMs <= now || (held.left.sandboxes ?? 0) === 0) held.retired = true;
      if (!held.retired || held.undecided > 0) continue;
      this.#held.delete(held.id);
      back.push({ id: held.id, project: held.project });
    }
    return back;
  }

  get size(): number {
    return this.#held.size;
  }

  #decided(lease: QuotaLeaseId, each: QuotaAmounts, unused: number): Held | undefined {
    const held = this.#held.get(lease);
    if (!held) return undefined;
    held.undecided -= 1;
    held.left = plus(held.left, times(each, unused));
    return held;
  }
}

const timesIn = (left: QuotaAmounts, each: QuotaAmounts): number =>
  (Object.entries(each) as [QuotaKey, number][]).reduce(
    (n, [key, amount]) => (amount === 0 ? n : Math.min(n, Math.floor((left[key] ?? 0) / amount))),
    Number.POSITIVE_INFINITY,
  );
