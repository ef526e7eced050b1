/**
 * When the lease of a holder that says nothing is over. Counted from when it was first seen in the books, on the monotonic clock of
 * whoever counts: the holder counts its life from when it *asked*, which was before. So the clocks of two machines are never compared.
 */
import type { QuotaLeaseId } from '#bus/project/quota.ts';

export class LeaseEnds {
  readonly #lifeMs: number;
  #seenAt = new Map<QuotaLeaseId, number>();

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs;
  }

  /** `ids`: every lease that is in the books now. Answers with those whose life is over. */
  seen(ids: readonly QuotaLeaseId[], now: number): ReadonlySet<QuotaLeaseId> {
    this.#seenAt = new Map(ids.map((id) => [id, this.#seenAt.get(id) ?? now]));
    return new Set([...this.#seenAt].flatMap(([id, at]) => (now >= at + this.#lifeMs ? [id] : [])));
  }
}
