/**
 * Folds one event into a sandbox's state through the machine.
 *
 * XState's public `transition()` builds an actor per call (50–190 µs). The machine is flat and does nothing but assign, so that its own
 * transitions, guards and assignments can be followed as a table, without an actor (1–2 µs). `sandbox.evolve.prop.spec.ts` holds both
 * equal over random histories; a machine that is more than that is refused at the start. xstate is pinned to one version because the
 * shape of its definitions is not promised.
 *
 * INV-REPLAY: a function of its arguments alone.
 */
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { SANDBOX_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import { contextOf, type SandboxContext, sandboxMachine } from './sandbox.machine.ts';

export const evolveSandbox = (state: SandboxState | null, event: SandboxEvent): SandboxState => {
  if (!state) {
    if (event.type !== 'SandboxAdmitted') throw new Error(`sandbox: ${event.type} before SandboxAdmitted`);
    return { ...contextOf(event), status: 'admitted' }; // what the machine begins with, without asking it
  }
  for (const { isOpen, target, assignments } of TABLE[state.status].get(event.type) ?? []) {
    if (isOpen && !isOpen({ context: state, event })) continue;
    const next = { ...state };
    for (const { assignment, params } of assignments) Object.assign(next, assignment({ context: next, event }, params));
    if (target) next.status = target;
    return next;
  }
  throw new Error(`sandbox ${state.id}: ${event.type} cannot follow in state ${state.status}`);
};

/** A snapshot of the machine as the state that commits carry. */
export const stateOf = (snapshot: { readonly value: unknown; readonly context: SandboxContext }): SandboxState => ({
  ...snapshot.context,
  status: snapshot.value as SandboxStatus,
});

type Given = { readonly context: SandboxContext; readonly event: SandboxEvent };
type Assignment = (given: Given, params: unknown) => Partial<SandboxContext>;
type Way = {
  readonly isOpen: ((given: Given) => boolean) | null;
  readonly target: SandboxStatus | null;
  readonly assignments: readonly { readonly assignment: Assignment; readonly params: unknown }[];
};
type Named = string | { readonly type: string; readonly params?: unknown };

const { actions, guards } = sandboxMachine.implementations as unknown as {
  readonly actions: Readonly<Record<string, { readonly assignment?: Assignment | Partial<SandboxContext> }>>;
  readonly guards: Readonly<Record<string, (given: Given) => boolean>>;
};

const assignmentOf = (action: Named): Way['assignments'][number] => {
  const { type, params } = typeof action === 'string' ? { type: action, params: undefined } : action;
  const assignment = actions[type]?.assignment;
  if (!assignment) throw new Error(`sandbox machine: action ${type} is no assignment`);
  if (typeof assignment === 'function') return { assignment, params };
  if (Object.values(assignment).some((value) => typeof value === 'function')) throw new Error(`sandbox machine: ${type} assigns field by field`);
  return { assignment: () => assignment, params };
};

/** Every way out of a status, in the order in which the machine tries them. */
const waysOf = (status: SandboxStatus): ReadonlyMap<string, readonly Way[]> => {
  const node = sandboxMachine.states[status];
  if (node?.type !== 'atomic' || node.always?.length || node.entry.length + node.exit.length + node.invoke.length + node.after.length > 0)
    throw new Error(`sandbox machine: ${status} does more than wait for events`);
  return new Map(
    [...node.transitions].map(([type, transitions]) => [
      type,
      transitions.map(({ guard, target, actions: named }): Way => {
        const isOpen = guard === undefined ? null : guards[guard as string];
        if (isOpen === undefined) throw new Error(`sandbox machine: a guard of ${status} has no name`);
        return { isOpen, target: (target?.[0]?.key as SandboxStatus | undefined) ?? null, assignments: (named as readonly Named[]).map(assignmentOf) };
      }),
    ]),
  );
};

const TABLE = Object.fromEntries(SANDBOX_STATUSES.map((status) => [status, waysOf(status)])) as Readonly<
  Record<SandboxStatus, ReadonlyMap<string, readonly Way[]>>
>;
