/**
 * How much of a project's quota may be lent. @paper §3.2
 *
 * INV-QUOTA: what is live plus what is lent and not spent never exceeds the limits of a project, at the moment anything is
 * lent, at every level. It holds because a lease is counted in full until it is settled; it is settled only up to a
 * fence in the log above which nothing was spent from it; and nothing is lent on a reading of the log that ends below a
 * fence. A limit that is lowered below what is in use lends nothing until use has fallen.
 */
import type { JobId, ProjectName } from '#bus/ids.ts';
import type { Positions, ProjectState, ShareUse, Usage } from '#bus/project/schema.ts';
import { fits, leftOf, plus, type QuotaAmounts } from '#bus/project/quota.ts';
import { QUOTA_LIMITS } from './limits.ts';

type Lending = Pick<ProjectState, 'limits' | 'leases'>;

/**
 * A bound on what is lent: a project, or a job's share of it. A share keeps no books: its leases are those of its project that name
 * the job, so one commit opens a lease in both, and one settlement ends it in both.
 */
export type QuotaNode = Lending & { readonly whose: { readonly project: ProjectName } | { readonly job: JobId }; readonly usage: Usage };

export const projectNode = ({ name, limits, leases }: ProjectState, usage: Usage): QuotaNode => ({ whose: { project: name }, limits, leases, usage });
export const shareNode = (project: Pick<ProjectState, 'leases'>, { job, limits, usage }: ShareUse): QuotaNode => ({
  whose: { job },
  limits,
  leases: leasesOf(project, job),
  usage,
});
export const leasesOf = ({ leases }: Pick<ProjectState, 'leases'>, job: JobId) => leases.filter((lease) => lease.job === job);

/** Use outside open leases, and every open lease in full. */
export const committedOf = ({ leases }: Pick<ProjectState, 'leases'>, { byLease, other }: Usage): QuotaAmounts => {
  const open = new Set(leases.map(({ id }) => id));
  const settled = Object.entries(byLease).flatMap(([id, used]) => (open.has(id) ? [] : [used]));
  return [...settled, ...leases.map(({ granted }) => granted)].reduce(plus, other);
};

/** Use alone: what would be committed if every lease gave back what it has not spent. */
export const usedOf = ({ byLease, other }: Usage): QuotaAmounts => Object.values(byLease).reduce(plus, other);

export const freeOf = ({ limits, leases, usage }: QuotaNode): QuotaAmounts => leftOf(limits, committedOf({ leases }, usage));

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
  | { readonly kind: 'none' };

/**
 * How many items a lease should be for, over a job's share, its project and all above that. Asked for: `count` now, and `prefetch` in all if
 * that leaves the others enough. Fewer than `count` only when no more exist at all.
 */
export const sizeLease = (chain: readonly QuotaNode[], each: QuotaAmounts, count: number, prefetch: number): LeaseSize => {
  let free: number = QUOTA_LIMITS.itemsPerLease * QUOTA_LIMITS.shareOfFree;
  let possible = count;
  for (const node of chain) {
    free = Math.min(free, fits(freeOf(node), each, free));
    possible = Math.min(possible, fits(leftOf(node.limits, usedOf(node.usage)), each, count));
  }
  if (free < possible) return { kind: 'recall' };
  if (possible === 0) return { kind: 'none' };
  const ample = Math.min(prefetch, Math.floor(free / QUOTA_LIMITS.shareOfFree), QUOTA_LIMITS.itemsPerLease);
  return { kind: 'lend', count: Math.max(possible, ample) };
};
