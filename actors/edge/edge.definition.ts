/** The Edge actor, as the host runs it. It calls for no work; its lease is the only thing that time changes. */
import type { EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import { wireError } from '#bus/errors.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideEdge } from './edge.decider.ts';
import { evolveEdge } from './edge.evolve.ts';

export const edgeDefinition: ActorDefinition<EdgeState, EdgeCommand, EdgeEvent, never> = {
  kind: 'edge',
  schema: recordVersion('edge'),
  decide: decideEdge,
  evolve: evolveEdge,
  pendingEffects: () => [],
  /** Watchers act on it, from outside: an Edge does not declare itself lost. */
  deadlines: (state) => (state.status === 'active' ? [{ kind: 'lease', at: state.leaseUntil, version: state.generation }] : []),
  /** Never: a forgotten Edge would begin again at generation 1, and fence nobody. */
  isOver: () => false,
  parseState: (raw, schema) => readState('edge', raw, schema),
  forgotten: ({ id }) => wireError('INVALID_STATE', `edge ${id} was forgotten; register under another name`),
};
