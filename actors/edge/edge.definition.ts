/** The Edge actor, as the host runs it. It calls for no work; its lease is the only thing that time changes. */
import { type EdgeCommand, type EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import { invalid } from '#bus/envelope.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideEdge } from './edge.decider.ts';
import { evolveEdge } from './edge.evolve.ts';

export const edgeDefinition: ActorDefinition<EdgeState, EdgeCommand, EdgeEvent, never> = {
  kind: 'edge',
  schema: 1,
  decide: decideEdge,
  evolve: evolveEdge,
  pendingEffects: () => [],
  /** Watchers act on it, from outside: an Edge does not declare itself lost. */
  deadlines: (state) => (state.status === 'active' ? [{ kind: 'lease', at: state.leaseUntil, version: state.generation }] : []),
  /** Never: a forgotten Edge would begin again at generation 1, and fence nobody. */
  isOver: () => false,
  parseState: (raw) => {
    const parsed = EdgeState.safeParse(raw);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', 'state of an edge', parsed.error);
    return parsed.data;
  },
};
