/**
 * Amounts of what projects may use: sandboxes, CPU, memory and disk, in all and by backend. @paper §3.2
 *
 * One flat vector, so that limits, leases, needs and use are added and compared by the same few lines. A limit that is
 * absent does not bound; an amount that is absent is zero, with one exception: a need without `diskMiB` has no bound on its
 * disk, and does not fit where disk is limited.
 */
import { z } from 'zod';
import type { JobId, ProjectName } from '../ids.ts';
import type { JobShare } from '../job/schema.ts';
import { Backend, type SandboxSpec } from '../sandbox/spec.ts';

export const RESOURCES = ['sandboxes', 'cpuMillis', 'memoryMiB', 'diskMiB'] as const;
export type Resource = (typeof RESOURCES)[number];
export type QuotaKey = Resource | `${Backend}.${Resource}`;
export const QUOTA_KEYS: readonly QuotaKey[] = [...RESOURCES, ...Backend.options.flatMap((b) => RESOURCES.map((r) => `${b}.${r}` as const))];

export const QuotaAmounts = z.partialRecord(z.enum(QUOTA_KEYS as [QuotaKey, ...QuotaKey[]]), z.number().int().nonnegative());
export type QuotaAmounts = z.infer<typeof QuotaAmounts>;

/** A portion of a project's quota, lent to one process for a while. */
export const QuotaLeaseId = z.string().regex(/^ql-[0-9a-f]{24}$/, 'a quota lease id looks like ql-<24 hex digits>');
export type QuotaLeaseId = z.infer<typeof QuotaLeaseId>;

export const NOTHING: QuotaAmounts = Object.freeze({});

/**
 * Whose quota pays for a sandbox: its project's, and within that a job's share where the job has one. Written as one word it is
 * what use is counted under; no project's name has a blank.
 */
export type Payer = { readonly project: ProjectName; readonly job: JobId | undefined };
export const payerOf = (project: ProjectName, { share }: Pick<SandboxSpec, 'share'>): Payer => ({ project, job: share });
export const payerKey = ({ project, job }: Payer): string => (job ? `${project} ${job}` : project);

/** A job's share as limits: what it does not name is bounded by the project alone. */
export const shareLimits = (share: JobShare): QuotaAmounts => Object.fromEntries(Object.entries(share).filter(([, amount]) => amount !== null)) as QuotaAmounts;

/** What one sandbox of this spec uses, from its assignment to its end. */
export const needOf = ({ backend, limits }: Pick<SandboxSpec, 'backend' | 'limits'>): QuotaAmounts => {
  const own: Partial<Record<Resource, number>> = { sandboxes: 1, cpuMillis: limits.cpuMillis, memoryMiB: limits.memoryMiB + limits.swapMiB };
  if (limits.diskMiB !== null) own.diskMiB = limits.diskMiB;
  return { ...own, ...Object.fromEntries(Object.entries(own).map(([resource, amount]) => [`${backend}.${resource}`, amount])) };
};

const combine = (a: QuotaAmounts, b: QuotaAmounts, how: (x: number, y: number) => number): QuotaAmounts => {
  const sum: QuotaAmounts = {};
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)]) as Set<QuotaKey>) {
    const amount = how(a[key] ?? 0, b[key] ?? 0);
    if (amount !== 0) sum[key] = amount;
  }
  return sum;
};
export const plus = (a: QuotaAmounts, b: QuotaAmounts): QuotaAmounts => combine(a, b, (x, y) => x + y);
/** Never below zero: what is taken off was put on before. */
export const minus = (a: QuotaAmounts, b: QuotaAmounts): QuotaAmounts => combine(a, b, (x, y) => Math.max(0, x - y));
export const times = (a: QuotaAmounts, n: number): QuotaAmounts => combine(a, a, (x) => x * n);
export const isNothing = (a: QuotaAmounts): boolean => Object.values(a).every((amount) => amount === 0);

/** How many times `each` fits into `free`, at most `wanted`. Keys that `free` lacks do not bound. */
export const fits = (free: QuotaAmounts, each: QuotaAmounts, wanted: number): number => {
  let n = wanted;
  for (const [key, left] of Object.entries(free) as [QuotaKey, number][]) {
    const amount = each[key];
    if (amount === undefined && isDisk(key) && each[key.replace('diskMiB', 'sandboxes') as QuotaKey] !== undefined) return 0;
    if (amount) n = Math.min(n, Math.floor(left / amount));
  }
  return Math.max(0, n);
};
const isDisk = (key: QuotaKey): boolean => key === 'diskMiB' || key.endsWith('.diskMiB');

/** What `limits` leave beside `used`; only limited keys. Nothing is left where use is above a limit that was lowered. */
export const leftOf = (limits: QuotaAmounts, used: QuotaAmounts): QuotaAmounts => {
  const left: QuotaAmounts = {};
  for (const [key, limit] of Object.entries(limits) as [QuotaKey, number][]) left[key] = Math.max(0, limit - (used[key] ?? 0));
  return left;
};

/** The first key by which `inner` allows more than `outer`: what is delegated may not be above what one has. */
export const exceeds = (inner: QuotaAmounts, outer: QuotaAmounts): QuotaKey | undefined =>
  (Object.keys(outer) as QuotaKey[]).find((key) => inner[key] !== undefined && (inner[key] ?? 0) > (outer[key] ?? 0));
