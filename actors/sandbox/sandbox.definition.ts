/** The sandbox actor, as the host runs it. */
import { invalid } from '#bus/envelope.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { ENDED_STATUSES, SandboxState } from '#bus/sandbox/state.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideSandbox } from './sandbox.decider.ts';
import { pendingSandboxEffects, type SandboxEffect, sandboxDeadlines } from './sandbox.effects.ts';
import { evolveSandbox } from './sandbox.evolve.ts';

export const sandboxDefinition: ActorDefinition<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect> = {
  kind: 'sandbox',
  schema: 1,
  decide: decideSandbox,
  evolve: evolveSandbox,
  pendingEffects: pendingSandboxEffects,
  deadlines: sandboxDeadlines,
  isOver: (state) => ENDED_STATUSES.has(state.status),
  parseState: (raw) => {
    const parsed = SandboxState.safeParse(raw);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', 'state of a sandbox', parsed.error);
    return parsed.data;
  },
};
