/** Folds one event into an Edge's state. INV-REPLAY: a function of its arguments alone. */
import type { EdgeEvent, EdgeState } from '#bus/edge/schema.ts';

export const evolveEdge = (state: EdgeState | null, event: EdgeEvent): EdgeState => {
  if (event.type === 'EdgeRegistered') return registered(state, event);
  if (!state) throw new Error(`edge: ${event.type} before EdgeRegistered`);
  switch (event.type) {
    case 'QueueFenced':
      return { ...state, fencedSequence: Math.max(state.fencedSequence, event.queueSequence), fencing: false };
    case 'LeaseRenewed':
      return { ...state, leaseMs: event.leaseMs, leaseUntil: event.leaseUntil };
    case 'EdgeLost':
      return { ...state, status: 'lost', lostReason: event.reason, lostGeneration: event.generation, lostAt: event.at };
    case 'EdgeRetired':
      return { ...state, status: 'retired' };
    case 'EdgeCordoned':
      return { ...state, cordoned: event.reason };
    case 'EdgeUncordoned':
      return { ...state, cordoned: null };
  }
};

/** What was said of the node and of its earlier generations outlives them. */
const registered = (state: EdgeState | null, event: Extract<EdgeEvent, { type: 'EdgeRegistered' }>): EdgeState => {
  const { name, generation, instance, capacity, backends, leaseMs, leaseUntil, queueSequence, fencing, at } = event;
  const isBackFromLoss = state?.status === 'lost';
  return {
    name,
    status: 'active',
    generation,
    instance,
    capacity,
    backends,
    registeredAt: at,
    leaseMs,
    leaseUntil,
    lostReason: null,
    lostGeneration: state?.lostGeneration ?? 0,
    lostAt: state?.lostAt ?? null,
    fencedSequence: isBackFromLoss ? queueSequence : (state?.fencedSequence ?? 0),
    fencing,
    cordoned: state?.cordoned ?? null,
  };
};
