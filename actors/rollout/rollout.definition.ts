/** The rollout actor, as the host runs it. */
import { wireError } from '#bus/errors.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { RolloutCommand, RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideRollout } from './rollout.decider.ts';
import { pendingRolloutEffects, type RolloutEffect, rolloutDeadlines } from './rollout.effects.ts';
import { evolveRollout } from './rollout.evolve.ts';

export const rolloutDefinition: ActorDefinition<RolloutState, RolloutCommand, RolloutEvent, RolloutEffect> = {
  kind: 'rollout',
  schema: recordVersion('rollout'),
  decide: decideRollout,
  evolve: evolveRollout,
  pendingEffects: pendingRolloutEffects,
  deadlines: rolloutDeadlines,
  isOver: (state) => state.status === 'ended',
  parseState: (raw, schema) => readState('rollout', raw, schema),
  forgotten: ({ id }) => wireError('KEY_EXPIRED', `rollout ${id} ended long ago and was forgotten; use a new key`),
};
