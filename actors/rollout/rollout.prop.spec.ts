/** Every reachable state of a rollout × every command: total, idempotent, turns in order, always ending. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type RolloutCommand, RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { rolloutDefinition } from './rollout.definition.ts';
import { address, COMMANDS, DELAYS_MS, T0 } from './testing/samples.ts';

const shapeOf = (s: RolloutState): string =>
  JSON.stringify([
    s.status,
    Math.min(s.attempt, 2),
    Math.min(s.turns, 3),
    s.open?.turn,
    s.open?.requestHash,
    s.lastAnswerHash,
    Math.min(s.steps, 2),
    s.outcome,
  ]);
const reached = reachableStates({ definition: rolloutDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
const decide = (state: RolloutState | null, command: RolloutCommand, at: number) =>
  rolloutDefinition.decide(state, command, { address, at: at as TimestampMs });
const apply = (state: RolloutState | null, command: RolloutCommand, at: number): RolloutState | null => {
  const decision = decide(state, command, at);
  return decision.kind === 'accept' ? fold<RolloutState, RolloutEvent>(rolloutDefinition, decision.events, state) : state;
};

test('every status is reached, and every state keeps its schema and its replay', () => {
  expect(new Set(reached.map((r) => r.state?.status))).toEqual(new Set([undefined, 'preparing', 'running', 'asking', 'answering', 'ending', 'ended']));
  for (const { state, events } of reached.slice(1)) {
    expect(fold<RolloutState, RolloutEvent>(rolloutDefinition, events)).toEqual(state);
    expect(RolloutState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const event of events) expect(RolloutEvent.safeParse(event).success).toBe(true);
  }
});

test('INV-IDEM: a command given again at once adds nothing', () => {
  for (const { state, at } of reached)
    for (const command of COMMANDS)
      for (const delayMs of DELAYS_MS) {
        const next = apply(state, command, at + delayMs);
        if (next && next !== state) expect(decide(next, command, at + delayMs).kind).not.toBe('accept');
      }
});

test('every living state has work or waits for a trainer, and has a deadline', () => {
  for (const { state } of reached.slice(1)) {
    if (!state) continue;
    const isEnded = state.status === 'ended';
    expect(rolloutDefinition.isOver(state)).toBe(isEnded);
    expect(rolloutDefinition.pendingEffects(state)).toHaveLength(isEnded || state.status === 'asking' ? 0 : 1);
    expect(rolloutDefinition.deadlines(state).length > 0).toBe(!isEnded);
    expect(state.open !== null).toBe(state.status === 'asking' || state.status === 'answering');
  }
});

test('INV-TURN: turns come in order, each is answered once, by no older owner', () => {
  const step = fc.record({ command: fc.constantFrom(...COMMANDS), delayMs: fc.constantFrom(0, 0, 0, 130_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
      let state: RolloutState | null = null;
      let at = T0;
      const answered: number[] = [];
      const told: number[] = [];
      for (const { command, delayMs } of steps) {
        at += delayMs;
        const decision = decide(state, command, at);
        if (decision.kind !== 'accept') continue;
        for (const event of decision.events) {
          if (event.type === 'TurnAnswered') answered.push(event.turn);
          if (event.type === 'StepsRecorded') told.push(...event.steps.map((s) => s.step));
        }
        if (command.type === 'AnswerTurn') expect(command.epoch).toBeGreaterThanOrEqual(command.jobEpoch);
        state = fold<RolloutState, RolloutEvent>(rolloutDefinition, decision.events, state);
      }
      expect(answered).toEqual(answered.map((_, i) => i));
      expect(new Set(told).size).toBe(told.length);
    }),
    { numRuns: 400 },
  );
});

test('an event that cannot be is a programmer’s error', () => {
  expect(() => rolloutDefinition.evolve(null, { type: 'RolloutEnded', at: T0 as TimestampMs })).toThrow(/before RolloutStarted/);
  const running = reached.find((r) => r.state?.status === 'running')?.state ?? null;
  expect(() => rolloutDefinition.evolve(running, { type: 'TurnAnswered', at: T0 as TimestampMs, turn: 0, answer: null, answerHash: 'a', epoch: 1 })).toThrow(
    /not open/,
  );
});
