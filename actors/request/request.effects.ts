/**
 * What a request's state calls for: every message that must reach an Edge, a chunk or a parent. Whether it did, the state often cannot
 * know, so sending is repeated after a redelivery, and who gets a message twice ignores the second. A request actor is loaded only by
 * a redelivery or a report, so a restart does not repeat every request ever made.
 */
import type { WireError } from '#bus/errors.ts';
import type { EdgeName, RequestId } from '#bus/ids.ts';
import { type ChunkCounts, type ChunkPhase, chunkSize, type GroupDecision } from '#bus/request/group.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { Assignment, RequestItem, RequestState } from '#bus/request/schema.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import type { Deadline } from '../kernel/definition.ts';
import { REQUEST_LIMITS } from './limits.ts';
import { countsOfChunk, phaseOfChunk } from './request.group.ts';

/** One message each. The key names all that is in it, so that a new item for the same Edge is new work. */
export type RequestEffect =
  | {
      readonly key: string;
      readonly type: 'ensureForwarded';
      readonly edge: EdgeName;
      readonly attempt: number;
      readonly assignments: readonly Assignment[];
      /** Admit, and start nothing before the group's decision, nor after this. */
      readonly heldUntil: TimestampMs | null;
      /** Say when they run. */
      readonly follow: boolean;
    }
  | {
      readonly key: string;
      readonly type: 'ensureReleased';
      readonly edge: EdgeName;
      readonly decision: GroupDecision;
      readonly assignments: readonly Assignment[];
    }
  | {
      readonly key: string;
      readonly type: 'ensureReported';
      readonly parent: RequestId;
      readonly chunk: number;
      readonly phase: ChunkPhase;
      readonly counts: ChunkCounts;
      readonly error: WireError | null;
    }
  | { readonly key: string; readonly type: 'ensureChunkPlaced'; readonly chunk: number; readonly first: number; readonly count: number }
  | {
      readonly key: string;
      readonly type: 'ensureChunkDecided';
      readonly chunk: number;
      readonly decision: GroupDecision;
      readonly error: WireError | null;
    };

export const pendingRequestEffects = (state: RequestState): readonly RequestEffect[] =>
  state.group ? effectsOfParent(state.group) : [...forwards(state), ...releases(state), ...reports(state)];

/**
 * What a later state calls for and an earlier one did not: who has just decided sends this alone. What was called for before has been sent
 * by whoever decided that, or is sent when its command comes again.
 */
export const newRequestEffects = (before: RequestState, after: RequestState): readonly RequestEffect[] => {
  const known = new Set<string>();
  for (const effect of pendingRequestEffects(before)) {
    known.add(effect.key);
    if (isBundle(effect)) for (const { sandboxId } of effect.assignments) known.add(`${effect.type} ${sandboxId}`);
  }
  return pendingRequestEffects(after).flatMap((effect): readonly RequestEffect[] => {
    if (known.has(effect.key)) return [];
    return isBundle(effect)
      ? narrowed(
          effect,
          effect.assignments.filter(({ sandboxId }) => !known.has(`${effect.type} ${sandboxId}`)),
        )
      : [effect];
  });
};

type Bundle = Extract<RequestEffect, { type: 'ensureForwarded' | 'ensureReleased' }>;
const isBundle = (effect: RequestEffect): effect is Bundle => effect.type === 'ensureForwarded' || effect.type === 'ensureReleased';
const narrowed = (bundle: Bundle, assignments: readonly Assignment[]): readonly Bundle[] => {
  if (assignments.length === 0) return [];
  return [{ ...bundle, assignments, key: keyOf(bundle.key.slice(0, bundle.key.lastIndexOf(':')), assignments) }];
};
const keyOf = (name: string, assignments: readonly Assignment[]): string => `${name}:${ranges(assignments)}`;

const forwards = ({ items, chunkOf, decision, deadlineAt }: RequestState): readonly RequestEffect[] => {
  const heldUntil = chunkOf?.mode === 'allOrNothing' ? addMs(deadlineAt, REQUEST_LIMITS.holdGraceMs as DurationMs) : null;
  const waiting = (item: RequestItem) => !item.error && item.progress === 'sent' && decision !== 'abandon';
  return byEdge(items, waiting).map(({ name, edge, attempt, assignments }) => ({
    key: keyOf(`forward:${name}`, assignments),
    type: 'ensureForwarded',
    edge,
    attempt,
    assignments,
    heldUntil,
    follow: chunkOf !== null,
  }));
};

/** What a node may hold is started, or given back; an item that never got there is stopped before it can be held. */
const releases = ({ items, decision }: RequestState): readonly RequestEffect[] => {
  if (!decision) return [];
  const concerned = (item: RequestItem) => (decision === 'start' ? item.progress === 'held' && !item.error : item.progress !== 'run');
  return byEdge(items, concerned).map(({ name, edge, assignments }) => ({
    key: keyOf(`release:${decision}:${name}`, assignments),
    type: 'ensureReleased',
    edge,
    decision,
    assignments,
  }));
};

const reports = (state: RequestState): readonly RequestEffect[] => {
  if (!state.chunkOf) return [];
  const { requestId: parent, chunk } = state.chunkOf;
  const phase = phaseOfChunk(state);
  const error = state.items.find((item) => item.error)?.error ?? null;
  return [{ key: `report:${phase}`, type: 'ensureReported', parent, chunk, phase, counts: countsOfChunk(state), error }];
};

const effectsOfParent = ({ count, mode, decision, error, chunks }: NonNullable<RequestState['group']>): readonly RequestEffect[] => {
  const effects: RequestEffect[] = [];
  let ahead = 0;
  for (const [chunk, { phase }] of chunks.entries()) {
    if (phase === 'waiting') {
      if (decision === 'abandon' || ahead >= REQUEST_LIMITS.chunksAhead) continue;
      ahead += 1;
      const first = chunk * WIRE_LIMITS.maxCreatesPerMessage;
      effects.push({ key: `place:${chunk}`, type: 'ensureChunkPlaced', chunk, first, count: chunkSize(count, chunk) });
    } else if (mode === 'allOrNothing' && decision && phase !== 'settled')
      effects.push({ key: `decide:${chunk}:${phase}`, type: 'ensureChunkDecided', chunk, decision, error });
  }
  return effects;
};

type AtEdge = { readonly name: string; readonly edge: EdgeName; readonly attempt: number; readonly assignments: Assignment[] };

/** Items that lie with a node, in one bundle per node and attempt. */
const byEdge = (items: readonly RequestItem[], wanted: (item: RequestItem) => boolean): readonly AtEdge[] => {
  const bundles = new Map<string, AtEdge>();
  for (const [index, item] of items.entries()) {
    const { edge, sandboxId, attempt } = item;
    if (!edge || !sandboxId || !wanted(item)) continue;
    const name = `${edge}:${attempt}`;
    const bundle = bundles.get(name) ?? { name, edge, attempt, assignments: [] };
    bundle.assignments.push({ index, attempt, edge, sandboxId });
    bundles.set(name, bundle);
  }
  return [...bundles.values()];
};

/** `0-3,7`: blocks of neighbouring items make short keys. Indices come in rising order. */
const ranges = (assignments: readonly Assignment[]): string => {
  const parts: [number, number][] = [];
  for (const { index } of assignments) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === index) last[1] = index;
    else parts.push([index, index]);
  }
  return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(',');
};

/** After it the key answers KEY_EXPIRED, and the record may be forgotten once the retention is over too. */
export const requestDeadlines = (state: RequestState): readonly Deadline[] => [{ kind: 'key', at: state.keyExpiresAt, version: 0 }];
