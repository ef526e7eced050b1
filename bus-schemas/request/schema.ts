/**
 * The request actor: what a client key names. It remembers the body's hash and where each item went, so that a repeated
 * create answers with the same sandboxes for the key's whole lifetime, whatever was restarted in between.
 *
 * A request of at most 256 items holds them itself. A larger one, or one that is all or nothing, is the parent of chunks
 * (`group.ts`), which are requests of the same kind.
 */
import { z } from 'zod';
import { WireError } from '../errors.ts';
import { ClientKey, EdgeName, ProjectName, RequestId, SandboxId } from '../ids.ts';
import { WIRE_LIMITS } from '../limits.ts';
import { QuotaLeaseId } from '../project/quota.ts';
import { SandboxSpec } from '../sandbox/spec.ts';
import { TimestampMs } from '../units.ts';
import { ChunkDecided, ChunkOf, ChunkReported, DecideChunk, GroupAccepted, GroupDecided, GroupDecision, GroupState, PlaceGroup, ReportChunk } from './group.ts';

const index = z.number().int().nonnegative();
const attempt = z.number().int().nonnegative();

export const Assignment = z.object({ index, attempt, edge: EdgeName, sandboxId: SandboxId });
export type Assignment = z.infer<typeof Assignment>;

const count = z.number().int().min(1).max(WIRE_LIMITS.maxCreatesPerMessage);
const upToOneMessage = <T extends z.ZodType>(item: T) => z.array(item).max(WIRE_LIMITS.maxCreatesPerMessage).default([]);

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
  chunkOf: ChunkOf.nullable().default(null),
});
/** One attempt at one item, and what became of it. */
export const AttemptNews = z.object({ index, attempt });
export const AttemptFailure = AttemptNews.extend({ error: WireError });
/**
 * Published by an Edge on a report lane about items of one packed create. `refused`: it will not take them. `held`: admitted,
 * and not started. `running`, `failed`: they came to run, or never will. The last three are told of chunks only.
 */
export const ReportBatch = z.object({
  type: z.literal('ReportBatch'),
  project: ProjectName,
  requestId: RequestId,
  refused: upToOneMessage(AttemptFailure),
  held: upToOneMessage(AttemptNews),
  running: upToOneMessage(AttemptNews),
  failed: upToOneMessage(AttemptFailure),
});
export type ReportBatch = z.infer<typeof ReportBatch>;
export const RequestBusCommand = z.discriminatedUnion('type', [PlaceSandboxes, ReportBatch, PlaceGroup, ReportChunk, DecideChunk]);
export type RequestBusCommand = z.infer<typeof RequestBusCommand>;

/** Room that was reserved for a request: the lease it is spent from (null: there is none), for how many items, and what is said of the others. */
export const ReservedQuota = z.object({ lease: QuotaLeaseId.nullable(), count: z.number().int().nonnegative(), error: WireError.nullable() });
export type ReservedQuota = z.infer<typeof ReservedQuota>;

/** The bus command with what only a shell can know: the choices of the placement policy and the quota, as data. */
export const RequestCommand = z.discriminatedUnion('type', [
  PlaceSandboxes.extend({ choices: z.array(EdgeName.nullable()), quota: ReservedQuota.optional() }),
  /** One choice per refused item, in their order. */
  ReportBatch.extend({ choices: z.array(EdgeName.nullable()) }),
  /** The request was committed after its lease had been settled, and its project has no room for it: nothing of it was forwarded. */
  z.object({ type: z.literal('ReportOverQuota'), project: ProjectName, requestId: RequestId, error: WireError }),
  PlaceGroup,
  ReportChunk,
  DecideChunk,
]);
export type RequestCommand = z.infer<typeof RequestCommand>;

const at = TimestampMs;
const indices = z.array(index).min(1);
export const RequestEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('RequestAccepted'),
    at,
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
    chunkOf: ChunkOf.nullable().default(null),
  }),
  z.object({ type: z.literal('SandboxesAssigned'), at, assignments: z.array(Assignment) }),
  z.object({ type: z.literal('SandboxUnplaceable'), at, index, error: WireError }),
  z.object({ type: z.literal('SandboxesHeld'), at, indices }),
  z.object({ type: z.literal('SandboxesRun'), at, indices }),
  z.object({ type: z.literal('SandboxDidNotRun'), at, index, error: WireError }),
  ChunkDecided,
  GroupAccepted,
  ChunkReported,
  GroupDecided,
]);
export type RequestEvent = z.infer<typeof RequestEvent>;

/** One item: where it was sent last and how far it came there, or why it was given up. */
export const RequestItem = z.object({
  sandboxId: SandboxId.nullable(),
  edge: EdgeName.nullable(),
  attempt,
  /** Told by the Edge, for items of chunks: `held` and `run` need not be sent again. */
  progress: z.enum(['sent', 'held', 'run']).default('sent'),
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
  /** Position = index. Empty in a parent. */
  items: z.array(RequestItem),
  /** In a chunk: its place below its parent, and what the parent decided. */
  chunkOf: ChunkOf.nullable().default(null),
  decision: GroupDecision.nullable().default(null),
  /** In a parent. */
  group: GroupState.nullable().default(null),
});
export type RequestState = z.infer<typeof RequestState>;
