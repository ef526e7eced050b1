/** Folds one event into a request's state. INV-REPLAY: a function of its arguments alone. */
import type { RequestEvent, RequestItem, RequestState } from '#bus/request/schema.ts';

const UNPLACED: RequestItem = { sandboxId: null, edge: null, attempt: 0, refusedBy: [], error: null };

export const evolveRequest = (state: RequestState | null, event: RequestEvent): RequestState => {
  if (event.type === 'RequestAccepted') {
    if (state) throw new Error(`request ${state.id}: accepted twice`);
    const { id, project, key, bodyHash, spec, forkedFrom, at, deadlineAt, keyExpiresAt, quotaLease, count } = event;
    const items = Array.from({ length: count }, () => UNPLACED);
    return { id, project, key, bodyHash, spec, forkedFrom, createdAt: at, deadlineAt, keyExpiresAt, quotaLease, items };
  }
  if (!state) throw new Error(`request: ${event.type} before RequestAccepted`);
  const items = [...state.items];
  const change = (index: number, next: (item: RequestItem) => RequestItem) => {
    const item = items[index];
    if (!item) throw new Error(`request ${state.id}: ${event.type} for item ${index} of ${items.length}`);
    items[index] = next(item);
  };
  if (event.type === 'SandboxesAssigned')
    for (const { index, attempt, edge, sandboxId } of event.assignments)
      change(index, (item) => ({ sandboxId, edge, attempt, refusedBy: refusers(item), error: null }));
  else change(event.index, (item) => ({ sandboxId: null, edge: null, attempt: item.attempt, refusedBy: refusers(item), error: event.error }));
  return { ...state, items };
};

/** An item leaves the node it was assigned to only because that node refused it, or too late to ask another. */
const refusers = ({ edge, refusedBy }: RequestItem): RequestItem['refusedBy'] => (edge ? [...refusedBy, edge] : refusedBy);
