/** Every reachable state of a request × every command: total, idempotent, each item in exactly one place. */
import { expect, test } from 'vitest';
import { sandboxIdFor } from '#bus/ids.ts';
import { type RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { requestDefinition } from './request.definition.ts';
import { newRequestEffects, pendingRequestEffects, type RequestEffect } from './request.effects.ts';
import { address, COMMANDS, DELAYS_MS, requestId, T0 } from './testing/samples.ts';

const shapeOf = (s: RequestState): string =>
  JSON.stringify([s.decision, s.chunkOf?.mode, s.items.map((i) => [i.edge, i.attempt, i.progress, i.refusedBy.length, i.error?.code])]);
const reached = reachableStates({ definition: requestDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
const decide = (state: RequestState | null, command: RequestCommand, at: number) =>
  requestDefinition.decide(state, command, { address, at: at as TimestampMs });
const apply = (state: RequestState | null, command: RequestCommand, at: number): RequestState | null => {
  const decision = decide(state, command, at);
  return decision.kind === 'accept' ? fold<RequestState, RequestEvent>(requestDefinition, decision.events, state) : state;
};

test('every state keeps its schema and its replay, and each item has a place or an error', () => {
  expect(reached.length).toBeGreaterThan(30);
  for (const { state, events } of reached) {
    if (!state) continue;
    expect(fold<RequestState, RequestEvent>(requestDefinition, events)).toEqual(state);
    expect(RequestState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const event of events) expect(RequestEvent.safeParse(event).success).toBe(true);
    for (const [index, { sandboxId, edge, attempt, error, refusedBy }] of state.items.entries()) {
      expect(sandboxId === null).toBe(edge === null);
      if (!edge) expect(error).not.toBeNull();
      if (edge) expect(sandboxId).toBe(sandboxIdFor(requestId, index, attempt, edge));
      expect(new Set(refusedBy).size).toBe(refusedBy.length);
    }
  }
});

test('INV-KEY: nothing ever changes an assignment but a refusal of that very attempt, or of the whole', () => {
  for (const { state, at } of reached) {
    if (!state) continue;
    for (const command of COMMANDS) {
      const next = apply(state, command, at) as RequestState;
      for (const [index, item] of state.items.entries())
        if (next.items[index]?.sandboxId !== item.sandboxId && command.type !== 'ReportOverQuota') {
          expect(item.progress).toBe('sent'); // what a node has taken stays where it is
          expect(refusedBy(command)).toContainEqual([index, item.attempt]);
        }
    }
  }
});

const refusedBy = (command: RequestCommand) => (command.type === 'ReportBatch' ? command.refused.map(({ index, attempt }) => [index, attempt]) : []);

test('INV-IDEM: a command given again at once adds nothing', () => {
  for (const { state, at } of reached)
    for (const command of COMMANDS)
      for (const delayMs of DELAYS_MS) {
        const next = apply(state, command, at + delayMs);
        if (next && next !== state) expect(decide(next, command, at + delayMs).kind).toBe('ignore');
      }
});

test('every assignment that no node has taken is forwarded once, and nothing else is', () => {
  for (const { state } of reached) {
    if (!state) continue;
    const forwarded = requestDefinition.pendingEffects(state).flatMap((e) => (e.type === 'ensureForwarded' ? e.assignments.map((a) => a.sandboxId) : []));
    expect([...forwarded].sort()).toEqual(state.items.flatMap((i) => (i.progress === 'sent' && !i.error ? (i.sandboxId ?? []) : [])).sort());
    expect(requestDefinition.isOver(state)).toBe(false);
  }
});

test('what a decision newly calls for is all that was not called for before, and nothing that was', () => {
  const works = (effects: readonly RequestEffect[]): string[] =>
    effects.flatMap((e) => ('assignments' in e ? e.assignments.map(({ sandboxId }) => `${e.type} ${sandboxId}`) : [e.key]));
  let [added, narrowed] = [0, 0];
  for (const { state, at } of reached)
    for (const command of COMMANDS) {
      const next = state && apply(state, command, at);
      if (!next) continue;
      const [before, after, fresh] = [pendingRequestEffects(state), pendingRequestEffects(next), newRequestEffects(state, next)];
      expect(works(fresh).sort()).toEqual(
        works(after)
          .filter((work) => !works(before).includes(work))
          .sort(),
      );
      const keys = new Set(before.map(({ key }) => key));
      expect(fresh.some(({ key }) => keys.has(key))).toBe(false); // a message of that id is in the queue already
      added += fresh.length;
      narrowed += fresh.filter(({ key }) => !after.some((effect) => effect.key === key)).length;
    }
  expect(added).toBeGreaterThan(100);
  expect(narrowed).toBeGreaterThan(0);
});

test('an event that cannot be is a programmer’s error', () => {
  const error = reached.find((r) => r.state?.items.some((i) => i.error))?.state?.items.find((i) => i.error)?.error;
  if (!error) throw new Error('no item was ever given up');
  expect(() => requestDefinition.evolve(null, { type: 'SandboxUnplaceable', at: T0 as TimestampMs, index: 0, error })).toThrow(/before it was accepted/);
});
