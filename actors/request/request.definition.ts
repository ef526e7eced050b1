/** The request actor, as the host runs it. */
import { invalid } from '#bus/envelope.ts';
import { type RequestCommand, type RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideRequest } from './request.decider.ts';
import { pendingRequestEffects, type RequestEffect, requestDeadlines } from './request.effects.ts';
import { evolveRequest } from './request.evolve.ts';

export const requestDefinition: ActorDefinition<RequestState, RequestCommand, RequestEvent, RequestEffect> = {
  kind: 'request',
  schema: 1,
  decide: decideRequest,
  evolve: evolveRequest,
  pendingEffects: pendingRequestEffects,
  deadlines: requestDeadlines,
  /** Never: even an expired key must still answer KEY_EXPIRED, and when that may end only the clock knows. */
  isOver: () => false,
  parseState: (raw) => {
    const parsed = RequestState.safeParse(raw);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', 'state of a request', parsed.error);
    return parsed.data;
  },
};
