/** The shared inert scope gives the same states as XState's public `transition()`: nothing here relies on the shape of a scope. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxDefinition } from './sandbox.definition.ts';
import { evolveSandbox, stateOf } from './sandbox.evolve.ts';
import { sandboxMachine } from './sandbox.machine.ts';
import { address, at, COMMANDS, create, DELAYS_MS, T0 } from './testing/samples.ts';

const publicEvolve = (state: SandboxState | null, event: SandboxEvent): SandboxState => {
  if (!state) {
    if (event.type !== 'SandboxAdmitted') throw new Error('not a first event');
    return stateOf(initialTransition(sandboxMachine, event)[0]);
  }
  const [next, actions] = transition(sandboxMachine, sandboxMachine.resolveState({ value: state.status, context: state }), event);
  expect(actions, 'the machine does nothing but assign').toEqual([]);
  return stateOf(next);
};

test('both fold every random life to the same state, event by event', () => {
  const step = fc.record({ command: fc.constantFrom(...COMMANDS), delayMs: fc.constantFrom(...DELAYS_MS) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 30, size: 'max' }), (steps) => {
      let state: SandboxState | null = null;
      let now = T0;
      for (const { command, delayMs } of [{ command: create, delayMs: 0 }, ...steps]) {
        now += delayMs;
        const decision = sandboxDefinition.decide(state, command, { address, at: at(now) });
        if (decision.kind !== 'accept') continue;
        for (const event of decision.events) {
          const next: SandboxState = evolveSandbox(state, event);
          expect(publicEvolve(state, event)).toEqual(next);
          state = next;
        }
      }
    }),
    { numRuns: 200 },
  );
});

test('a state is never changed in place', () => {
  const decision = sandboxDefinition.decide(null, create, { address, at: at(T0) });
  if (decision.kind !== 'accept') throw new Error('a first create must be accepted');
  let state: SandboxState | null = null;
  for (const event of decision.events) {
    const frozen: SandboxState | null = state && Object.freeze({ ...state, spec: Object.freeze({ ...state.spec }) });
    state = evolveSandbox(frozen, Object.freeze(event));
  }
  expect(state?.status).toBe('starting');
});
