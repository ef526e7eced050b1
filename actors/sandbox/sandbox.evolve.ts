/**
 * Folds one event into a sandbox's state through the machine.
 *
 * XState's public `transition()` builds an actor per call (50–190 µs). The machine itself asks only for a scope object, so
 * one inert scope over an empty actor serves every call at a fifth of that. `sandbox.evolve.prop.spec.ts` holds both equal
 * over random histories; xstate is pinned to one version because the scope's shape is not promised.
 *
 * INV-REPLAY: a function of its arguments alone.
 */
import { type AnyActorScope, createEmptyActor } from 'xstate';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import { contextOf, type SandboxContext, sandboxMachine } from './sandbox.machine.ts';

const nothing = () => {};
const nobody = createEmptyActor();
const inertScope = {
  self: nobody,
  system: nobody.system,
  id: '',
  sessionId: '',
  logger: nothing,
  defer: nothing,
  emit: nothing,
  stopChild: nothing,
  actionExecutor: nothing,
} as AnyActorScope;

export const evolveSandbox = (state: SandboxState | null, event: SandboxEvent): SandboxState => {
  if (!state) {
    if (event.type !== 'SandboxAdmitted') throw new Error(`sandbox: ${event.type} before SandboxAdmitted`);
    return { ...contextOf(event), status: 'admitted' }; // what the machine begins with, without asking it
  }
  const before = { ...inStatus(state.status), context: state as SandboxContext };
  const after = sandboxMachine.transition(before, event, inertScope);
  if (after === before) throw new Error(`sandbox ${state.id}: ${event.type} cannot follow in state ${state.status}`);
  return stateOf(after);
};

type Snapshot = ReturnType<typeof sandboxMachine.resolveState>;
/** Resolving a status to nodes of the machine is half of a transition's cost, and depends on the status alone. */
const resolved = new Map<SandboxStatus, Snapshot>();
const inStatus = (status: SandboxStatus): Snapshot => {
  const known = resolved.get(status);
  if (known) return known;
  const snapshot = sandboxMachine.resolveState({ value: status, context: {} as SandboxContext });
  resolved.set(status, snapshot);
  return snapshot;
};

/** A snapshot of the machine as the state that commits carry. */
export const stateOf = (snapshot: { readonly value: unknown; readonly context: SandboxContext }): SandboxState => ({
  ...snapshot.context,
  status: snapshot.value as SandboxStatus,
});
