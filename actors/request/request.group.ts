/**
 * Groups: a parent that counts its chunks, and chunks that obey their parent.
 *
 * INV-WHOLE: of an all-or-nothing group either every item is started or none. Nodes hold what they admit and start nothing before
 * the parent has committed `start`, which it does once, and only when every item of every chunk is held. So whatever dies in
 * between, the worst that stays behind is room that is held until its time is over.
 */
import { wireError } from '#bus/errors.ts';
import { KEY_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import { CHUNK_PHASES, type ChunkPhase, type GroupChunk, type GroupState } from '#bus/request/group.ts';
import type { RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore, reject } from '../kernel/definition.ts';
import { REQUEST_LIMITS } from './limits.ts';
import { tooLate } from './request.items.ts';

type RequestDecision = Decision<RequestEvent>;
type Of<T extends RequestCommand['type']> = Extract<RequestCommand, { type: T }>;

// The parent -----------------------------------------------------------------------------------------------------

export const acceptGroup = (command: Of<'PlaceGroup'>, at: TimestampMs): RequestDecision => {
  const { requestId, project, key, bodyHash, count, mode, spec, forkedFrom, deadlineAt } = command;
  if (!Number.isInteger(count) || count < 1 || count > WIRE_LIMITS.maxCreatesPerGroup)
    return reject(wireError('INVALID_ARGUMENT', `group ${requestId} asks for ${count} sandboxes; a group has 1 to ${WIRE_LIMITS.maxCreatesPerGroup}`));
  const keyExpiresAt = addMs(at, KEY_LIMITS.requestKeyLifetimeMs as DurationMs);
  return accept({ type: 'GroupAccepted', at, id: requestId, project, key, bodyHash, count, mode, spec, forkedFrom, deadlineAt, keyExpiresAt });
};

export const chunkReported = (state: RequestState, { chunk, phase, counts, error }: Of<'ReportChunk'>, at: TimestampMs): RequestDecision => {
  const known = state.group?.chunks[chunk];
  if (!state.group || !known) return reject(wireError('INVALID_ARGUMENT', `request ${state.id} has no chunk ${chunk}; nothing was changed`));
  if (rank(phase) <= rank(known.phase)) return ignore(`chunk ${chunk} is ${known.phase} already`);
  const reported: RequestEvent = { type: 'ChunkReported', at, chunk, phase, counts };
  const { mode, decision, chunks } = state.group;
  if (mode === 'asManyAsFit' || decision) return accept(reported);
  const decided = (what: 'start' | 'abandon', why: typeof error): RequestDecision =>
    accept<RequestEvent>(reported, { type: 'GroupDecided', at, decision: what, error: why });
  if (phase === 'lacking' || phase === 'settled') return decided('abandon', error ?? tooLate(state.id)); // nothing settles undecided but by failing
  const allHeld = chunks.every((other, n) => (n === chunk ? phase : other.phase) === 'held');
  if (!allHeld) return accept(reported);
  return at < state.deadlineAt ? decided('start', null) : decided('abandon', tooLate(state.id));
};

/** An all-or-nothing group that is still open at its deadline is given up; undefined when there is nothing to decide. */
export const groupOverdue = (state: RequestState, at: TimestampMs): RequestDecision | undefined =>
  state.group?.mode === 'allOrNothing' && state.group.decision === null && at >= state.deadlineAt
    ? accept({ type: 'GroupDecided', at, decision: 'abandon', error: tooLate(state.id) })
    : undefined;

/** Nothing more will come of a group: every chunk has settled, or was never begun and never will, or its time is long over. */
export const isGroupOver = ({ group, deadlineAt }: Pick<RequestState, 'group' | 'deadlineAt'>, at: number): boolean => {
  if (!group || at >= deadlineAt + REQUEST_LIMITS.holdGraceMs) return true;
  return group.chunks.every(({ phase }) => phase === 'settled' || (phase === 'waiting' && group.decision === 'abandon'));
};

const rank = (phase: ChunkPhase): number => CHUNK_PHASES.indexOf(phase);

// A chunk --------------------------------------------------------------------------------------------------------

export const decideChunk = (state: RequestState, { decision, error }: Of<'DecideChunk'>, at: TimestampMs): RequestDecision => {
  if (state.chunkOf?.mode !== 'allOrNothing')
    return reject(wireError('INVALID_ARGUMENT', `request ${state.id} is no chunk of an all-or-nothing group; nothing was changed`));
  if (state.decision) return ignore(`the group's decision is known: ${state.decision}`);
  return accept({ type: 'ChunkDecided', at, decision, error });
};

/** How far a chunk has come, as its parent is told. */
export const phaseOfChunk = ({ items, chunkOf, decision }: RequestState): ChunkPhase => {
  const failed = items.some(({ error }) => error);
  if (chunkOf?.mode === 'allOrNothing' && decision === null) {
    if (failed) return 'lacking';
    return items.every(({ progress }) => progress !== 'sent') ? 'held' : 'placed';
  }
  return items.every(({ progress, error }) => error || progress === 'run') ? 'settled' : 'placed';
};

export const countsOfChunk = ({ items }: RequestState): { running: number; failed: number } => ({
  running: items.filter(({ progress, error }) => !error && progress === 'run').length,
  failed: items.filter(({ error }) => error).length,
});

// Both, folded ---------------------------------------------------------------------------------------------------

export const newGroup = ({ count, mode }: Pick<GroupState, 'count' | 'mode'>): GroupState => ({
  count,
  mode,
  decision: null,
  error: null,
  chunks: Array.from({ length: Math.ceil(count / WIRE_LIMITS.maxCreatesPerMessage) }, (): GroupChunk => ({ phase: 'waiting', running: 0, failed: 0 })),
});

export const withChunk = (group: GroupState, chunk: number, next: GroupChunk): GroupState => ({
  ...group,
  chunks: group.chunks.map((old, n) => (n === chunk ? next : old)),
});
