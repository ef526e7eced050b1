/** Every reachable state of a project × every command: total, idempotent, never lending or granting above what there is. */
import { expect, test } from 'vitest';
import { actionsOf } from '#bus/project/policy.ts';
import { plus, type QuotaAmounts } from '#bus/project/quota.ts';
import { type ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { projectDefinition } from './project.definition.ts';
import { address, COMMANDS, DELAYS_MS, T0 } from './testing/samples.ts';

const shapeOf = (s: ProjectState): string =>
  JSON.stringify([
    s.ancestors.length,
    s.limits,
    s.principals.map((p) => [p.name, p.credentials.length]),
    s.grants.map((g) => [g.principal, g.role]),
    s.children.length,
    s.leases.map((l) => [l.id, l.status]),
    s.fence,
  ]);
const reached = reachableStates({
  definition: projectDefinition,
  address,
  commands: COMMANDS,
  delaysMs: DELAYS_MS,
  startAt: T0,
  // Each half of a project alone: together they would only multiply.
  shapeOf: (s) =>
    s.leases.length > 0 || Object.keys(s.fence).length > 0 ? JSON.stringify([s.limits, s.leases.map((l) => [l.id, l.status]), s.fence]) : shapeOf(s),
});
const decide = (state: ProjectState | null, command: ProjectCommand, at: number) =>
  projectDefinition.decide(state, command, { address, at: at as TimestampMs });

test('every state keeps its schema and its replay', () => {
  expect(reached.length).toBeGreaterThan(60);
  for (const { state, events } of reached) {
    if (!state) continue;
    expect(fold<ProjectState, ProjectEvent>(projectDefinition, events)).toEqual(state);
    expect(ProjectState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const event of events) expect(ProjectEvent.safeParse(event).success).toBe(true);
    expect(projectDefinition.isOver(state)).toBe(false);
  }
});

test('every command is answered in every state, and given again at once adds nothing', () => {
  for (const { state, at: reachedAt } of reached)
    for (const command of COMMANDS)
      for (const delayMs of DELAYS_MS) {
        const at = reachedAt + delayMs;
        const decision = decide(state, command, at);
        if (decision.kind !== 'accept') continue;
        const next = fold<ProjectState, ProjectEvent>(projectDefinition, decision.events, state);
        const again = decide(next, command, at);
        // A confirmation is always a commit: it decides a race. It changes the state only once.
        if (command.type === 'ConfirmCharge')
          expect(again.kind === 'accept' ? fold<ProjectState, ProjectEvent>(projectDefinition, again.events, next) : next).toEqual(next);
        else expect(again.kind).not.toBe('accept');
      }
});

test('INV-QUOTA: whatever is lent fits beside what is lent already and what is in use', () => {
  for (const { state, at } of reached)
    for (const command of COMMANDS) {
      if (command.type !== 'OpenLease' || decide(state, command, at).kind !== 'accept' || !state) continue;
      const lent = [...state.leases.map(({ granted }) => granted), command.lease.granted].reduce(plus, command.usage.other) as QuotaAmounts;
      expect(lent.sandboxes ?? 0).toBeLessThanOrEqual(state.limits.sandboxes ?? Number.POSITIVE_INFINITY);
    }
});

test('INV-GRANT and INV-DELEGATE: nobody gives more than it has', () => {
  for (const { state, at } of reached)
    for (const command of COMMANDS) {
      if (decide(state, command, at).kind !== 'accept' || !state) continue;
      if (command.type === 'GrantActions') expect(command.grantor.actions).toEqual(expect.arrayContaining(actionsOf(command.grant)));
      if (command.type === 'DelegateQuota') expect(command.limits.sandboxes).toBeLessThanOrEqual(state.limits.sandboxes ?? Number.POSITIVE_INFINITY);
    }
});

test('an event before the first is a programmer’s error', () => {
  expect(() => projectDefinition.evolve(null, { type: 'QuotaSet', at: T0 as TimestampMs, limits: {} })).toThrow(/before ProjectCreated/);
});
