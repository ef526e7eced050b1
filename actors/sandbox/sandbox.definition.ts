/** The sandbox actor, as the host runs it. */
import { wireError } from '#bus/errors.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideSandbox } from './sandbox.decider.ts';
import { pendingSandboxEffects, type SandboxEffect, sandboxDeadlines } from './sandbox.effects.ts';
import { evolveSandbox } from './sandbox.evolve.ts';

export const sandboxDefinition: ActorDefinition<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect> = {
  kind: 'sandbox',
  schema: recordVersion('sandbox'),
  decide: decideSandbox,
  evolve: evolveSandbox,
  pendingEffects: pendingSandboxEffects,
  deadlines: sandboxDeadlines,
  isOver: (state) => ENDED_STATUSES.has(state.status),
  parseState: (raw, schema) => readState('sandbox', raw, schema),
  forgotten: ({ id }) => wireError('SANDBOX_ENDED', `sandbox ${id} has ended and its record was forgotten; create a new one`),
};
