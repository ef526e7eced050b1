/** Every reachable state of an Edge × every command: total, idempotent, fenced. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { edgeDefinition } from './edge.definition.ts';
import { address, COMMANDS, DELAYS_MS, T0 } from './testing/samples.ts';

const shapeOf = (s: EdgeState): string => JSON.stringify([s.status, Math.min(s.generation, 4), s.instance, s.cordoned, s.fencing, s.fencedSequence]);
const reached = reachableStates({ definition: edgeDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
const apply = (state: EdgeState | null, command: EdgeCommand, at: number): EdgeState | null => {
  const decision = edgeDefinition.decide(state, command, { address, at: at as TimestampMs });
  return decision.kind === 'accept' ? fold<EdgeState, EdgeEvent>(edgeDefinition, decision.events, state) : state;
};

test('every status is reached, and every state keeps its schema and its replay', () => {
  expect(new Set(reached.map((r) => r.state?.status))).toEqual(new Set([undefined, 'active', 'lost', 'retired']));
  for (const { state, events } of reached.slice(1)) {
    expect(fold<EdgeState, EdgeEvent>(edgeDefinition, events)).toEqual(state);
    expect(EdgeState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const event of events) expect(EdgeEvent.safeParse(event).success).toBe(true);
    expect(edgeDefinition.pendingEffects(state as EdgeState)).toEqual([]);
    expect(edgeDefinition.isOver(state as EdgeState)).toBe(false);
  }
});

test('INV-IDEM: a command given again at once adds nothing', () => {
  for (const { state, at: reachedAt } of reached)
    for (const command of COMMANDS)
      for (const delayMs of DELAYS_MS) {
        const next = apply(state, command, reachedAt + delayMs);
        expect(apply(next, command, reachedAt + delayMs)).toEqual(next);
      }
});

test('INV-FENCE and INV-LOST hold over random histories', () => {
  const step = fc.record({ command: fc.constantFrom(...COMMANDS), delayMs: fc.constantFrom(...DELAYS_MS) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      let state: EdgeState | null = null;
      let at = T0;
      const lostGenerations: number[] = [];
      for (const { command, delayMs } of steps) {
        at += delayMs;
        const before: EdgeState | null = state;
        state = apply(state, command, at);
        if (!before || !state || state === before) continue;
        expect(state.generation).toBe(command.type === 'RegisterEdge' ? before.generation + 1 : before.generation);
        if (before.instance !== state.instance) expect(command.type).toBe('RegisterEdge');
        if (state.status === 'lost' && before.status !== 'lost') {
          expect(command).toMatchObject({ type: 'DeclareLost', leaseUntil: before.leaseUntil });
          lostGenerations.push(state.generation);
        }
      }
      expect(new Set(lostGenerations).size).toBe(lostGenerations.length);
    }),
    { numRuns: 300 },
  );
});

test('an event before the first registration is a programmer’s error', () => {
  expect(() => edgeDefinition.evolve(null, { type: 'EdgeRetired', at: T0 as TimestampMs })).toThrow(/before EdgeRegistered/);
});
