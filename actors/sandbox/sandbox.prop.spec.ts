/** Every reachable state of a sandbox × every command: total, idempotent, always ending, always bounded. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WireError } from '#bus/errors.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import { SandboxEvent } from '#bus/sandbox/events.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES, SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import { fold } from '../kernel/definition.ts';
import { type Reached, reachableStates } from '../kernel/testing/reachable.ts';
import { sandboxDefinition } from './sandbox.definition.ts';
import { address, at, COMMANDS, DELAYS_MS, destroyed, remove, shapeOf, stop, T0 } from './testing/samples.ts';

const { decide, evolve, pendingEffects, deadlines, isOver } = sandboxDefinition;
type Live = Reached<SandboxState, SandboxEvent> & { readonly state: SandboxState };

const reached = reachableStates({ definition: sandboxDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
const live = reached.filter((r): r is Live => r.state !== null);

/** Ways to go on from a state, one by one; the callback sees the decision and the state it leads to. */
const everyDecision = (visit: (from: Reached<SandboxState, SandboxEvent>, command: SandboxCommand, now: number) => void) => {
  for (const from of reached) for (const command of COMMANDS) for (const delayMs of DELAYS_MS) visit(from, command, from.at + delayMs);
};
const apply = (state: SandboxState | null, command: SandboxCommand, now: number): SandboxState | null => {
  const decision = decide(state, command, { address, at: at(now) });
  return decision.kind === 'accept' ? fold<SandboxState, SandboxEvent>(sandboxDefinition, decision.events, state) : state;
};

test('the search finds every status at rest', () => {
  const found = new Set(live.map((r) => r.state.status));
  expect([...found].sort()).toEqual([...SANDBOX_STATUSES].sort());
  expect(reached.length).toBeGreaterThan(100);
});

test('every state × every command is accepted, ignored with a reason, or rejected with a well-formed error', () => {
  const seen = new Set<string>(); // one sample of each kind of answer is parsed: parsing all of them is what takes long
  everyDecision(({ state }, command, now) => {
    const decision = decide(state, command, { address, at: at(now) });
    const name = `${command.type} in ${state?.status}: ${decision.kind}`;
    if (decision.kind === 'ignore' && decision.reason === '') throw new Error(`${name} without a reason`);
    if (decision.kind === 'reject' && decision.error.outcome !== 'not_applied') throw new Error(`${name} as ${decision.error.outcome}`);
    if (seen.has(name)) return;
    seen.add(name);
    if (decision.kind === 'reject') expect(WireError.safeParse(decision.error).success, name).toBe(true);
    if (decision.kind === 'accept') for (const event of decision.events) expect(SandboxEvent.safeParse(event).success, `${name}, ${event.type}`).toBe(true);
  });
});

test('INV-IDEM: a command given again at once adds nothing', () => {
  everyDecision(({ state }, command, now) => {
    const next = apply(state, command, now);
    if (next === null || next === state) return;
    const again = decide(next, command, { address, at: at(now) });
    if (again.kind === 'accept') throw new Error(`${command.type} from ${state?.status} is accepted twice`);
  });
});

test('INV-REPLAY: folding the events gives the state, and the state survives JSON and its schema', () => {
  for (const { state, events } of live) {
    expect(fold<SandboxState, SandboxEvent>(sandboxDefinition, events)).toEqual(state);
    expect(SandboxState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
  }
});

describe('INV-STOP: stop and delete are goals', () => {
  test.each([
    ['stop', stop],
    ['delete', remove],
  ])('%s ends from every state, and however often the destroy is late', (_, command) => {
    for (const { state, at: reachedAt } of live) {
      let now = reachedAt + 1;
      expect(decide(state, command, { address, at: at(now) }).kind).not.toBe('reject');
      let next = apply(state, command, now);
      if (next && !ENDED_STATUSES.has(next.status)) {
        expect(next.status).toBe('stopping');
        for (let round = 0; round < 3; round += 1) {
          const due = deadlines(next).find((d) => d.kind === 'transition');
          now = due?.at ?? Number.NaN;
          next = apply(next, { type: 'DeadlinePassed', kind: 'transition', version: 0, activityAt: at(0) }, now) as SandboxState;
          expect(next.status).toBe('stopping');
        }
        next = apply(next, destroyed, now + 1);
      }
      expect(ENDED_STATUSES.has(next?.status as SandboxStatus)).toBe(true);
      if (command === remove) expect(next?.forget).toBe(true);
    }
  });
});

test('INV-BOUND: a state on its way to another has a deadline and work to do, a held one only waits; one at rest has neither', () => {
  const atRest: ReadonlySet<SandboxStatus> = new Set(['running', 'paused', ...ENDED_STATUSES]);
  for (const { state } of live) {
    const isBound = deadlines(state).some((d) => d.kind === 'transition');
    expect(isBound, state.status).toBe(!atRest.has(state.status));
    if (!atRest.has(state.status)) expect(pendingEffects(state).length > 0, state.status).toBe(state.status !== 'admitted');
    expect(state.returnTo !== null, 'returnTo').toBe(state.status === 'snapshotting');
  }
});

test('an ended sandbox calls for nothing, and never comes back', () => {
  for (const { state, at: reachedAt } of live) {
    expect(isOver(state)).toBe(ENDED_STATUSES.has(state.status));
    if (!isOver(state)) continue;
    expect([pendingEffects(state), deadlines(state), state.pid, state.transitionDeadlineAt, state.runningDeadlineAt, state.idleDeadlineAt]).toEqual([
      [],
      [],
      null,
      null,
      null,
      null,
    ]);
    expect(state.endedAt).not.toBeNull();
    for (const command of COMMANDS) expect(apply(state, command, reachedAt)?.status).toBe(state.status);
  }
});

test('a deadline that is followed when it is due always moves the sandbox on', () => {
  for (const { state } of live)
    for (const deadline of deadlines(state)) {
      const command: SandboxCommand = { type: 'DeadlinePassed', kind: deadline.kind as 'total', version: deadline.version, activityAt: at(0) };
      expect(apply(state, command, deadline.at), `${deadline.kind} in ${state.status}`).not.toEqual(state);
      expect(apply(state, command, deadline.at - 1), `${deadline.kind} in ${state.status}, too early`).toEqual(state);
    }
});

test('effect keys are unique in a state, and new lives never restart work', () => {
  for (const { state, at: reachedAt } of live) {
    const keys = pendingEffects(state).map((e) => e.key);
    expect(new Set(keys).size).toBe(keys.length);
    const extended = apply(state, { type: 'ExtendLives', totalMs: 5_000_000 as never }, reachedAt) as SandboxState;
    expect(pendingEffects(extended).map((e) => e.key)).toEqual(keys);
  }
});

test('every event that a state does not expect is a programmer’s error, not a silent no-op', () => {
  const samples = new Map<string, SandboxEvent>();
  everyDecision(({ state }, command, now) => {
    const decision = decide(state, command, { address, at: at(now) });
    if (decision.kind === 'accept') for (const event of decision.events) samples.set(event.type, event);
  });
  expect([...samples.keys()].sort()).toEqual(SandboxEvent.options.map((o) => o.shape.type.value).sort());
  const accepted = new Set<string>();
  for (const { state } of live)
    for (const event of samples.values()) {
      try {
        evolve(state, event);
        accepted.add(`${state.status} ${event.type}`);
      } catch (thrown) {
        expect(String(thrown)).toMatch(/cannot follow/);
      }
    }
  for (const status of ENDED_STATUSES) expect([...accepted].filter((a) => a.startsWith(`${status} `))).toEqual([`${status} SandboxForgetting`]);
  expect(() => evolve(null, { type: 'SandboxPaused', at: at(T0), memoryGivenBackMiB: null })).toThrow(/before SandboxAdmitted/);
});

test('random lives of any length keep the schema, the order of time and the replay', () => {
  const step = fc.record({ command: fc.constantFrom(...COMMANDS), delayMs: fc.constantFrom(...DELAYS_MS) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      let state: SandboxState | null = null;
      let now = T0;
      const events: SandboxEvent[] = [];
      for (const { command, delayMs } of [{ command: COMMANDS[0] as SandboxCommand, delayMs: 0 }, ...steps]) {
        now += delayMs;
        const decision = decide(state, command, { address, at: at(now) });
        if (decision.kind !== 'accept') continue;
        for (const event of decision.events) {
          state = evolve(state, event);
          events.push(event);
        }
      }
      expect(fold<SandboxState, SandboxEvent>(sandboxDefinition, events)).toEqual(state);
      expect(SandboxState.safeParse(state).success).toBe(true);
    }),
    { numRuns: 300 },
  );
});
