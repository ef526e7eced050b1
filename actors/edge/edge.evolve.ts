/** Folds one event into an Edge's state. INV-REPLAY: a function of its arguments alone. */
import type { EdgeEvent, EdgeState } from '#bus/edge/schema.ts';

export const evolveEdge = (state: EdgeState | null, event: EdgeEvent): EdgeState => {
  if (event.type === 'EdgeRegistered') {
    const { name, generation, instance, capacity, backends, leaseUntil, at } = event;
    return { name, status: 'active', generation, instance, capacity, backends, registeredAt: at, leaseUntil, lostReason: null };
  }
  if (!state) throw new Error(`edge: ${event.type} before EdgeRegistered`);
  switch (event.type) {
    case 'LeaseRenewed':
      return { ...state, leaseUntil: event.leaseUntil };
    case 'EdgeLost':
      return { ...state, status: 'lost', lostReason: event.reason };
    case 'EdgeRetired':
      return { ...state, status: 'retired' };
  }
};
