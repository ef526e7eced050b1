/** The request actor, as the host runs it. */
import { wireError } from '#bus/errors.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideRequest } from './request.decider.ts';
import { pendingRequestEffects, type RequestEffect, requestDeadlines } from './request.effects.ts';
import { evolveRequest } from './request.evolve.ts';

export const requestDefinition: ActorDefinition<RequestState, RequestCommand, RequestEvent, RequestEffect> = {
  kind: 'request',
  schema: recordVersion('request'),
  decide: decideRequest,
  evolve: evolveRequest,
  pendingEffects: pendingRequestEffects,
  deadlines: requestDeadlines,
  /** Never: even an expired key must still answer KEY_EXPIRED, and when that may end only the clock knows. */
  isOver: () => false,
  parseState: (raw, schema) => readState('request', raw, schema),
  forgotten: ({ id }) => wireError('KEY_EXPIRED', `request ${id} was forgotten after its key had expired; create under a new key`),
};
