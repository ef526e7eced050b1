/**
 * How much of a project's quota may be lent. @paper §3.2
 *
 * INV-QUOTA: what is live plus what is lent and not spent never exceeds the limits of a project, at the moment anything is
 * lent, at every level. It holds because a lease is counted in full until it is settled; it is settled only up to a
 * fence in the log above which nothing was spent from it; and nothing is lent on a reading of the log that ends below a
 * fence. A limit that is lowered below what is in use lends nothing until use has fallen.
 */
import type { Positions, ProjectState, Usage } from '#bus/project/schema.ts';
import { fits, leftOf, plus, type QuotaAmounts } from '#bus/project/quota.ts';
import { QUOTA_LIMITS } from './limits.ts';

type Lending = Pick<ProjectState, 'limits' | 'leases' | 'fence'>;

/** Use outside open leases, and every open lease in full. */
export const committedOf = ({ leases }: Pick<ProjectState, 'leases'>, { byLease, other }: Usage): QuotaAmounts => {
  const open = new Set(leases.map(({ id }) => id));
  const settled = Object.entries(byLease).flatMap(([id, used]) => (open.has(id) ? [] : [used]));
  return [...settled, ...leases.map(({ granted }) => granted)].reduce(plus, other);
};

/** Use alone: what would be committed if every lease gave back what it has not spent. */
export const usedOf = ({ byLease, other }: Usage): QuotaAmounts => Object.values(byLease).reduce(plus, other);

export const freeOf = (state: Lending, usage: Usage): QuotaAmounts => leftOf(state.limits, committedOf(state, usage));

/** Whether a reading of the log reaches the fence. */
export const reaches = (asOf: Positions, fence: Positions): boolean => Object.entries(fence).every(([shard, sequence]) => (asOf[shard] ?? 0) >= sequence);

export const furthest = (a: Positions, b: Positions): Positions => {
  const out: Positions = { ...a };
  for (const [shard, sequence] of Object.entries(b)) out[shard] = Math.max(out[shard] ?? 0, sequence);
  return out;
};

export type LeaseSize =
  | { readonly kind: 'lend'; readonly count: number }
  /** Enough is lent and not spent: call it back, then ask again. */
  | { readonly kind: 'recall' }
  | { readonly kind: 'none'; readonly project: string };

/**
 * How many items a lease should be for, over a project and all above it. Asked for: `count` now, and `prefetch` in all if
 * that leaves the others enough. Fewer than `count` only when no more exist at all.
 */
export const sizeLease = (
  chain: readonly { readonly state: ProjectState; readonly usage: Usage }[],
  each: QuotaAmounts,
  count: number,
  prefetch: number,
): LeaseSize => {
  let free: number = QUOTA_LIMITS.itemsPerLease * QUOTA_LIMITS.shareOfFree;
  let possible = count;
  let binding: string = '';
  for (const { state, usage } of chain) {
    free = Math.min(free, fits(freeOf(state, usage), each, free));
    const here = fits(leftOf(state.limits, usedOf(usage)), each, count);
    if (here < possible) binding = state.name;
    possible = Math.min(possible, here);
  }
  if (free < possible) return { kind: 'recall' };
  if (possible === 0) return { kind: 'none', project: binding };
  const ample = Math.min(prefetch, Math.floor(free / QUOTA_LIMITS.shareOfFree), QUOTA_LIMITS.itemsPerLease);
  return { kind: 'lend', count: Math.max(possible, ample) };
};
