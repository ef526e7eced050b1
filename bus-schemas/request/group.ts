/**
 * Groups: up to 32,768 equal sandboxes under one client key. The key names the *parent* request, which holds no items but
 * counts per chunk; each chunk of at most 256 is a request of its own below it. @paper §1 §4
 *
 * `asManyAsFit`: chunks are placed and start independently; what finds no node fails by itself.
 * `allOrNothing`: nodes only hold what they admit (nothing is started) until every item of every chunk is held; then all of it
 * starts, or, when one item finds no node, all of it is given back.
 */
import { z } from 'zod';
import { WireError } from '../errors.ts';
import { ClientKey, ProjectName, RequestId, SandboxId } from '../ids.ts';
import { WIRE_LIMITS } from '../limits.ts';
import { SandboxSpec } from '../sandbox/spec.ts';
import { TimestampMs } from '../units.ts';
import { GroupDecision } from './decision.ts';

export { GroupDecision } from './decision.ts';

export const GroupMode = z.enum(['asManyAsFit', 'allOrNothing']);
export type GroupMode = z.infer<typeof GroupMode>;

/** Where a chunk belongs. `first`: index in the whole group of the chunk's item 0. */
export const ChunkOf = z.object({
  requestId: RequestId,
  chunk: z.number().int().nonnegative(),
  first: z.number().int().nonnegative(),
  mode: GroupMode,
});
export type ChunkOf = z.infer<typeof ChunkOf>;

/**
 * How far a chunk has come, in this order. `placed`: every item was sent to a node or given up. `held`, `lacking`: of an
 * all-or-nothing group that is not decided, all items are held, or one is given up. `settled`: every item runs or has failed.
 */
export const CHUNK_PHASES = ['waiting', 'placed', 'held', 'lacking', 'settled'] as const;
export const ChunkPhase = z.enum(CHUNK_PHASES);
export type ChunkPhase = z.infer<typeof ChunkPhase>;

export const ChunkCounts = z.object({ running: z.number().int().nonnegative(), failed: z.number().int().nonnegative() });
export type ChunkCounts = z.infer<typeof ChunkCounts>;

const count = z.number().int().min(1).max(WIRE_LIMITS.maxCreatesPerGroup);

/** Published by the apiserver on a create lane. */
export const PlaceGroup = z.object({
  type: z.literal('PlaceGroup'),
  project: ProjectName,
  key: ClientKey,
  requestId: RequestId,
  bodyHash: z.string(),
  count,
  mode: GroupMode,
  spec: SandboxSpec,
  /** The sandbox whose snapshot they start from. */
  forkedFrom: SandboxId.nullable().default(null),
  deadlineAt: TimestampMs,
});
export type PlaceGroup = z.infer<typeof PlaceGroup>;

/** A chunk to its parent, on a report lane. `error`: of the first item that failed. */
export const ReportChunk = z.object({
  type: z.literal('ReportChunk'),
  project: ProjectName,
  requestId: RequestId,
  chunk: z.number().int().nonnegative(),
  phase: ChunkPhase,
  counts: ChunkCounts,
  error: WireError.nullable(),
});
/** The parent to a chunk, on a report lane. `error`: why the group was given up. */
export const DecideChunk = z.object({
  type: z.literal('DecideChunk'),
  project: ProjectName,
  requestId: RequestId,
  decision: GroupDecision,
  error: WireError.nullable(),
});

const at = TimestampMs;
export const GroupAccepted = z.object({
  type: z.literal('GroupAccepted'),
  at,
  id: RequestId,
  project: ProjectName,
  key: ClientKey,
  bodyHash: z.string(),
  count,
  mode: GroupMode,
  spec: SandboxSpec,
  /** The sandbox whose snapshot they start from. */
  forkedFrom: SandboxId.nullable().default(null),
  deadlineAt: TimestampMs,
  keyExpiresAt: TimestampMs,
});
export const ChunkReported = z.object({
  type: z.literal('ChunkReported'),
  at,
  chunk: z.number().int().nonnegative(),
  phase: ChunkPhase,
  counts: ChunkCounts,
});
/** All-or-nothing only: every item is held, or one cannot be had. */
export const GroupDecided = z.object({ type: z.literal('GroupDecided'), at, decision: GroupDecision, error: WireError.nullable() });
/** In a chunk: what its parent decided. */
export const ChunkDecided = z.object({ type: z.literal('ChunkDecided'), at, decision: GroupDecision, error: WireError.nullable() });

export const GroupChunk = z.object({ phase: ChunkPhase, ...ChunkCounts.shape });
export type GroupChunk = z.infer<typeof GroupChunk>;
/** What makes a request a parent. Position in `chunks` = number of the chunk. */
export const GroupState = z.object({
  count,
  mode: GroupMode,
  /** Of an all-or-nothing group; null while it is open, and for the other mode. */
  decision: GroupDecision.nullable(),
  error: WireError.nullable(),
  chunks: z.array(GroupChunk),
});
export type GroupState = z.infer<typeof GroupState>;

/** Items of chunk `chunk` of a group of `count`. */
export const chunkSize = (total: number, chunk: number): number => Math.min(WIRE_LIMITS.maxCreatesPerMessage, total - chunk * WIRE_LIMITS.maxCreatesPerMessage);
export const chunkCount = (total: number): number => Math.ceil(total / WIRE_LIMITS.maxCreatesPerMessage);

/** The group as a whole, from its chunks. */
export const groupCounts = ({ count: total, chunks }: GroupState): { readonly total: number; readonly running: number; readonly failed: number } => ({
  total,
  running: chunks.reduce((n, chunk) => n + chunk.running, 0),
  failed: chunks.reduce((n, chunk) => n + chunk.failed, 0),
});
