/**
 * Quota, as placement sees it: room is reserved before a choice is committed, from leases that the process holds, so that no
 * commit of a project is needed per sandbox. @paper §3.2
 *
 *     const room = await quota.reserve(payerOf(project, spec), needOf(spec), count)     // may grant fewer than asked
 *     commit RequestAccepted { quotaLease: room.lease, … }
 *     room.committed(placed)  → true: forward at once · false: `quota.confirm(…)` first
 *     room.cancel()           → nothing was committed
 *
 * A request whose record is found (a redelivery, another placement's) is confirmed before anything of it is forwarded: its
 * lease may have been settled without it. How it is kept: `actors/project/quota.ts`, decision record 0030.
 */
import type { WireError } from '#bus/errors.ts';
import type { RequestId } from '#bus/ids.ts';
import type { Payer, QuotaAmounts, QuotaLeaseId } from '#bus/project/quota.ts';

export interface Reservation {
  /** Goes into the commit: what was spent is read from the log, by lease. */
  readonly lease: QuotaLeaseId;
  /** Items that have room: at least one, at most as many as were asked for. */
  readonly count: number;
  /** Says of the items beyond `count` why they have none. */
  readonly error: WireError | null;
  /**
   * The commit is durable, and `placed` of the items were given a node; room of the others returns to the lease.
   * False: the acknowledgement came after the lease's end, so the project may not know of the commit: confirm it first.
   */
  committed(placed: number): boolean;
  /** Nothing was committed, for certain. An append whose outcome is unknown is neither: leave it alone, the lease's end settles it. */
  cancel(): void;
}

export type ReserveOutcome =
  | { readonly outcome: 'reserved'; readonly reservation: Reservation }
  /** QUOTA_EXCEEDED, or FORBIDDEN for a project that does not exist: no item has room. */
  | { readonly outcome: 'refused'; readonly error: WireError }
  /** Room is being given back elsewhere, or IAM does not answer: give the command back to the queue for so long. */
  | { readonly outcome: 'later'; readonly retryAfterMs: number };

/** `exceeded`: it must not be forwarded, its items end as QUOTA_EXCEEDED. */
export type ConfirmOutcome = { readonly outcome: 'counted' | 'exceeded' | 'later'; readonly error: WireError | null };

export interface Quota {
  /** Room for up to `count` equal sandboxes, `each` of them needing so much. */
  reserve(payer: Payer, each: QuotaAmounts, count: number): Promise<ReserveOutcome>;
  /** Makes sure that a committed request counts: `sequence` is that of its newest commit in its shard. */
  confirm(request: { readonly payer: Payer; readonly id: RequestId; readonly lease: QuotaLeaseId; readonly sequence: number }): Promise<ConfirmOutcome>;
}
