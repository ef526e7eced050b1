/**
 * Verbs that pause or resume a whole set: by ids, or every sandbox with these labels, a bounded page at a time. @paper §6.3
 *
 * An answer tells of each sandbox of the page what its node decided; what became of it is in its commits. Repeating a page under its key
 * changes nothing.
 */
import { z } from 'zod';
import { WireError } from '../errors.ts';
import { ClientKey, SandboxId } from '../ids.ts';
import { API_LIMITS } from '../limits.ts';
import { Decision } from './decision.ts';

const pageSize = z.number().int().min(1).max(API_LIMITS.manyPerPage);
const request = z
  .strictObject({
    v: z.literal(1),
    key: ClientKey.optional(),
    ids: z.array(SandboxId).min(1).max(API_LIMITS.manyPerPage).optional(),
    /** All must match; none of them matches every sandbox of the project. */
    labels: z.record(z.string(), z.string()).optional(),
    /** With labels: the next page begins after this id. */
    after: z.string().optional(),
    limit: pageSize.default(API_LIMITS.manyPerPage),
    /** With labels: wait until the list reflects at least this sequence of a shard. */
    atLeast: z.record(z.string(), z.number().int().nonnegative()).default({}),
  })
  .refine(({ ids, labels }) => (ids === undefined) !== (labels === undefined), 'name sandboxes by ids or choose them by labels, one of the two');

/** Exactly one of `decision` and `error` is there. */
export const ManyItem = z.object({ id: SandboxId, decision: Decision.optional(), error: WireError.optional() });
export type ManyItem = z.infer<typeof ManyItem>;
const response = z.object({ items: z.array(ManyItem), next: z.string().nullable() });

export const MANY_API = {
  /** Of those with the labels, those that run. */
  pauseMany: { request, response },
  /** Of those with the labels, those that are paused or on the way to it. */
  resumeMany: { request, response },
} as const;
export type ManyVerb = keyof typeof MANY_API;
