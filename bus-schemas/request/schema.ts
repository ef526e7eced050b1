/**
 * The request actor: what a client key names. It remembers the body's hash and where each item went, so that a repeated
 * create answers with the same sandboxes for the key's whole lifetime, whatever was restarted in between.
 */
import { z } from 'zod';
import { ClientKey, EdgeName, ProjectName, RequestId, SandboxId } from '../ids.ts';
import { WIRE_LIMITS } from '../limits.ts';
import { WireError } from '../errors.ts';
import { QuotaLeaseId } from '../project/quota.ts';
import { TimestampMs } from '../units.ts';
import { SandboxSpec } from '../sandbox/spec.ts';

export const Assignment = z.object({
  index: z.number().int().nonnegative(),
  attempt: z.number().int().nonnegative(),
  edge: EdgeName,
  sandboxId: SandboxId,
});
export type Assignment = z.infer<typeof Assignment>;

const count = z.number().int().min(1).max(WIRE_LIMITS.maxCreatesPerMessage);

/** The sandbox whose snapshot it starts from. */
const forkedFrom = SandboxId.nullable().default(null);

/** Published by the apiserver on a create lane. One spec for `count` items: a group shares it (@paper §4). */
export const PlaceSandboxes = z.object({
  type: z.literal('PlaceSandboxes'),
  project: ProjectName,
  key: ClientKey,
  requestId: RequestId,
  bodyHash: z.string(),
  count,
  spec: SandboxSpec,
  forkedFrom,
  /** After this nothing is placed any more. */
  deadlineAt: TimestampMs,
});
/** Published by an Edge on a create lane: it will not take this item. */
export const ReportRefused = z.object({
  type: z.literal('ReportRefused'),
  project: ProjectName,
  requestId: RequestId,
  index: z.number().int().nonnegative(),
  attempt: z.number().int().nonnegative(),
  error: WireError,
});
export const RequestBusCommand = z.discriminatedUnion('type', [PlaceSandboxes, ReportRefused]);
export type RequestBusCommand = z.infer<typeof RequestBusCommand>;

/** Room that was reserved for a request: the lease it is spent from (null: there is none), for how many items, and what is said of the others. */
export const ReservedQuota = z.object({ lease: QuotaLeaseId.nullable(), count: z.number().int().nonnegative(), error: WireError.nullable() });
export type ReservedQuota = z.infer<typeof ReservedQuota>;

/** The bus command with what only a shell can know: the choices of the placement policy and the quota, as data. */
export const RequestCommand = z.discriminatedUnion('type', [
  PlaceSandboxes.extend({ choices: z.array(EdgeName.nullable()), quota: ReservedQuota.optional() }),
  ReportRefused.extend({ choice: EdgeName.nullable() }),
  /** The request was committed after its lease had been settled, and its project has no room for it: nothing of it was forwarded. */
  z.object({ type: z.literal('ReportOverQuota'), project: ProjectName, requestId: RequestId, error: WireError }),
]);
export type RequestCommand = z.infer<typeof RequestCommand>;

export const RequestEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('RequestAccepted'),
    at: TimestampMs,
    id: RequestId,
    project: ProjectName,
    key: ClientKey,
    bodyHash: z.string(),
    count,
    spec: SandboxSpec,
    forkedFrom,
    deadlineAt: TimestampMs,
    keyExpiresAt: TimestampMs,
    /** What its sandboxes are spent from; null where nothing is reserved. */
    quotaLease: QuotaLeaseId.nullable().default(null),
  }),
  z.object({ type: z.literal('SandboxesAssigned'), at: TimestampMs, assignments: z.array(Assignment) }),
  z.object({ type: z.literal('SandboxUnplaceable'), at: TimestampMs, index: z.number().int().nonnegative(), error: WireError }),
]);
export type RequestEvent = z.infer<typeof RequestEvent>;

/** One item: where it was sent last, or why it was given up. */
export const RequestItem = z.object({
  sandboxId: SandboxId.nullable(),
  edge: EdgeName.nullable(),
  attempt: z.number().int().nonnegative(),
  refusedBy: z.array(EdgeName),
  error: WireError.nullable(),
});
export type RequestItem = z.infer<typeof RequestItem>;

export const RequestState = z.object({
  id: RequestId,
  project: ProjectName,
  key: ClientKey,
  bodyHash: z.string(),
  spec: SandboxSpec,
  forkedFrom,
  createdAt: TimestampMs,
  deadlineAt: TimestampMs,
  keyExpiresAt: TimestampMs,
  quotaLease: QuotaLeaseId.nullable().default(null),
  /** Position = index. */
  items: z.array(RequestItem),
});
export type RequestState = z.infer<typeof RequestState>;
