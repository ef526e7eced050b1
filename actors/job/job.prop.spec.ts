/** Every reachable state of a job × every command: total, idempotent, one owner, always ending. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { jobDefinition } from './job.definition.ts';
import { address, COMMANDS, DELAYS_MS, T0 } from './testing/samples.ts';

const shapeOf = (s: JobState): string =>
  JSON.stringify([s.status, s.owner?.holder, Math.min(s.epoch, 3), Math.min(s.goalVersion, 3), s.spec.onOwnerLost, s.endReason]);
const reached = reachableStates({ definition: jobDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
const decide = (state: JobState | null, command: JobCommand, at: number) => jobDefinition.decide(state, command, { address, at: at as TimestampMs });
const apply = (state: JobState | null, command: JobCommand, at: number): JobState | null => {
  const decision = decide(state, command, at);
  return decision.kind === 'accept' ? fold<JobState, JobEvent>(jobDefinition, decision.events, state) : state;
};

test('every status is reached, and every state keeps its schema and its replay', () => {
  expect(new Set(reached.map((r) => r.state?.status))).toEqual(new Set([undefined, 'active', 'pausing', 'paused', 'resuming', 'ending', 'ended']));
  for (const { state, events } of reached.slice(1)) {
    expect(fold<JobState, JobEvent>(jobDefinition, events)).toEqual(state);
    expect(JobState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const event of events) expect(JobEvent.safeParse(event).success).toBe(true);
  }
});

test('INV-IDEM: a command given again at once adds nothing', () => {
  for (const { state, at } of reached)
    for (const command of COMMANDS)
      for (const delayMs of DELAYS_MS) {
        const next = apply(state, command, at + delayMs);
        if (!next || next === state) continue;
        // A claim by force is the one thing that may be meant twice: each fences whoever came between.
        if (command.type === 'ClaimJob' && command.holder === next.owner?.holder)
          expect(next.owner.holder).toBe(apply(next, command, at + delayMs)?.owner?.holder);
        else expect(decide(next, command, at + delayMs).kind).not.toBe('accept');
      }
});

test('stop is legal from every state, and what is bound somewhere has an effect and a deadline', () => {
  for (const { state, at } of reached.slice(1)) {
    if (!state) continue;
    const stopped = apply(state, { type: 'StopJob' }, at);
    expect(['ending', 'ended']).toContain(stopped?.status);
    const isOnItsWay = ['pausing', 'resuming', 'ending'].includes(state.status);
    expect(jobDefinition.pendingEffects(state)).toHaveLength(isOnItsWay ? 1 : 0);
    expect(jobDefinition.deadlines(state).some((d) => d.kind === 'transition')).toBe(isOnItsWay);
    expect(jobDefinition.isOver(state)).toBe(state.status === 'ended');
  }
});

test('INV-ORPHAN: whatever happens, a job that nobody asks for anything ends by its deadlines alone', () => {
  for (const { state: from, at: reachedAt } of reached.slice(1)) {
    let [state, at] = [from as JobState, reachedAt];
    for (let steps = 0; state.status !== 'ended'; steps += 1) {
      expect(steps).toBeLessThan(8);
      const [effect] = jobDefinition.pendingEffects(state);
      const counts = { reached: 1, failed: 0, left: 0 };
      const due = [...jobDefinition.deadlines(state)].sort((a, b) => a.at - b.at)[0];
      const command: JobCommand = effect
        ? { type: 'ReportMembers', goal: effect.goal, goalVersion: effect.goalVersion, counts }
        : { type: 'JobDeadlinePassed', kind: due?.kind as 'life', version: due?.version ?? -1 };
      at = Math.max(at, effect ? at : (due?.at ?? at));
      state = apply(state, command, at) as JobState;
    }
  }
});

test('INV-LEASE: the epoch rises with each claim and with nothing else, and only its holder renews', () => {
  const step = fc.record({ command: fc.constantFrom(...COMMANDS), delayMs: fc.constantFrom(...DELAYS_MS) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      let state: JobState | null = null;
      let at = T0;
      for (const { command, delayMs } of steps) {
        at += delayMs;
        const before: JobState | null = state;
        state = apply(state, command, at);
        if (!before || !state || state === before) continue;
        expect(state.epoch).toBe(command.type === 'ClaimJob' ? before.epoch + 1 : before.epoch);
        if (state.owner && before.owner && state.owner.holder !== before.owner.holder) expect(command.type).toBe('ClaimJob');
        if (command.type === 'RenewJobLease') {
          expect([command.holder, command.epoch]).toEqual([before.owner?.holder, before.epoch]);
          expect(before.owner?.leaseUntil).toBeGreaterThan(at);
        }
        expect(state.goalVersion).toBeGreaterThanOrEqual(before.goalVersion);
      }
    }),
    { numRuns: 300 },
  );
});

test('an event before the creation is a programmer’s error', () => {
  expect(() => jobDefinition.evolve(null, { type: 'JobReleased', at: T0 as TimestampMs })).toThrow(/before JobCreated/);
});
