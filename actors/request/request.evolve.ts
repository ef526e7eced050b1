/** Folds one event into a request's state. INV-REPLAY: a function of its arguments alone. */
import type { RequestEvent, RequestItem, RequestState } from '#bus/request/schema.ts';
import { newGroup, withChunk } from './request.group.ts';

const UNPLACED: RequestItem = { sandboxId: null, edge: null, attempt: 0, progress: 'sent', refusedBy: [], error: null };

export const evolveRequest = (state: RequestState | null, event: RequestEvent): RequestState => {
  if (event.type === 'RequestAccepted' || event.type === 'GroupAccepted') {
    if (state) throw new Error(`request ${state.id}: accepted twice`);
    return accepted(event);
  }
  if (!state) throw new Error(`request: ${event.type} before it was accepted`);
  if (event.type === 'ChunkReported') return { ...state, group: withChunk(groupOf(state, event), event.chunk, { phase: event.phase, ...event.counts }) };
  if (event.type === 'GroupDecided') return { ...state, group: { ...groupOf(state, event), decision: event.decision, error: event.error } };
  return onItems(state, event);
};

const accepted = (event: Extract<RequestEvent, { type: 'RequestAccepted' | 'GroupAccepted' }>): RequestState => {
  const { id, project, key, bodyHash, spec, forkedFrom, at, deadlineAt, keyExpiresAt } = event;
  const isGroup = event.type === 'GroupAccepted';
  return {
    id,
    project,
    key,
    bodyHash,
    spec,
    forkedFrom,
    createdAt: at,
    deadlineAt,
    keyExpiresAt,
    quotaLease: isGroup ? null : event.quotaLease,
    items: isGroup ? [] : Array.from({ length: event.count }, () => UNPLACED),
    chunkOf: isGroup ? null : event.chunkOf,
    decision: null,
    group: isGroup ? newGroup(event) : null,
  };
};

type ItemEvent = Exclude<RequestEvent, { type: 'RequestAccepted' | 'GroupAccepted' | 'ChunkReported' | 'GroupDecided' }>;

const onItems = (state: RequestState, event: ItemEvent): RequestState => {
  const items = [...state.items];
  const change = (index: number, next: (item: RequestItem) => RequestItem) => {
    const item = items[index];
    if (!item) throw new Error(`request ${state.id}: ${event.type} for item ${index} of ${items.length}`);
    items[index] = next(item);
  };
  switch (event.type) {
    case 'SandboxesAssigned':
      for (const { index, attempt, edge, sandboxId } of event.assignments)
        change(index, (item) => ({ sandboxId, edge, attempt, progress: 'sent', refusedBy: refusers(item), error: null }));
      break;
    case 'SandboxUnplaceable':
      change(event.index, (item) => ({ ...item, sandboxId: null, edge: null, refusedBy: refusers(item), error: event.error }));
      break;
    case 'SandboxesHeld':
      for (const index of event.indices) change(index, (item) => ({ ...item, progress: 'held' }));
      break;
    case 'SandboxesRun':
      for (const index of event.indices) change(index, (item) => ({ ...item, progress: 'run' }));
      break;
    case 'SandboxDidNotRun':
      change(event.index, (item) => ({ ...item, error: event.error }));
      break;
    case 'ChunkDecided': // what is given up keeps its place, so that the node can be told
      if (event.decision === 'abandon')
        for (const [index, { error }] of items.entries()) if (!error) change(index, (item) => ({ ...item, error: event.error }));
      return { ...state, items, decision: event.decision };
  }
  return { ...state, items };
};

const groupOf = (state: RequestState, { type }: RequestEvent): NonNullable<RequestState['group']> => {
  if (!state.group) throw new Error(`request ${state.id}: ${type}, and it is no group`);
  return state.group;
};

/** An item leaves the node it was assigned to only because that node refused it, or too late to ask another. */
const refusers = ({ edge, refusedBy }: RequestItem): RequestItem['refusedBy'] => (edge ? [...refusedBy, edge] : refusedBy);
