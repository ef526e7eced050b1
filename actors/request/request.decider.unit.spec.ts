import { describe, expect, test } from 'vitest';
import { sandboxIdFor } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { RequestCommand, RequestState } from '#bus/request/schema.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { REQUEST_LIMITS } from './limits.ts';
import { requestDefinition } from './request.definition.ts';
import { newRequestEffects } from './request.effects.ts';
import { address, DEADLINE_MS, E1, E2, edgeNamed, full, impossible, missing, place, refuse, requestId, T0 } from './testing/samples.ts';

const given = (...commands: RequestCommand[]) =>
  givenActor(
    requestDefinition,
    address,
    historyOf(
      requestDefinition,
      address,
      commands.map((command, i) => ({ command, at: T0 + i })),
    ),
  );
const itemsOf = (g: ReturnType<typeof given>) => (g.state as RequestState).items;

describe('placing', () => {
  test('records every choice in one commit, before anything is forwarded', () => {
    given()
      .when(place([E1, null, E2]), T0)
      .thenEvents(
        { type: 'RequestAccepted', count: 3, keyExpiresAt: (T0 + KEY_LIMITS.requestKeyLifetimeMs) as never },
        {
          type: 'SandboxesAssigned',
          assignments: [
            { index: 0, attempt: 0, edge: E1, sandboxId: sandboxIdFor(requestId, 0, 0, E1) },
            { index: 2, attempt: 0, edge: E2, sandboxId: sandboxIdFor(requestId, 2, 0, E2) },
          ],
        },
        { type: 'SandboxUnplaceable', index: 1, error: { code: 'NO_CAPACITY' } as never },
      );
  });

  test('again with the same body gives the same sandboxes, whatever placement would choose now', () => {
    given(place([E1]))
      .when(place([E2]), T0 + 1_000)
      .thenIgnored(/placed already/);
    given(place([E1]))
      .when(place([], { count: 1 }), T0 + 1_000)
      .thenIgnored(/placed already/);
  });

  test('again with another body is a conflict, and after its lifetime the key is spent', () => {
    given(place([E1]))
      .when(place([E1], { bodyHash: 'other' }), T0 + 1_000)
      .thenRejected('KEY_CONFLICT', /use a new key/);
    given(place([E1]))
      .when(place([E1]), T0 + KEY_LIMITS.requestKeyLifetimeMs)
      .thenRejected('KEY_EXPIRED', /new key/);
  });

  test('after the deadline gives every item up, so that a repetition gets the same answer', () => {
    given()
      .when(place([E1, E2]), T0 + DEADLINE_MS)
      .thenEvents(
        { type: 'RequestAccepted' },
        { type: 'SandboxUnplaceable', index: 0, error: { code: 'DEADLINE_EXCEEDED', outcome: 'not_applied' } as never },
        { type: 'SandboxUnplaceable', index: 1 },
      );
  });

  test('what does not fit together is refused', () => {
    given()
      .when(place([E1], { count: 2 }), T0)
      .thenRejected('INVALID_ARGUMENT', /1 choices/);
    given()
      .when(place([E1], { project: 'other' as never }), T0)
      .thenRejected('INVALID_ARGUMENT', /was sent to/);
    given()
      .when(refuse(0, 0, E1), T0)
      .thenRejected('REQUEST_NOT_FOUND');
    given(place([E1]))
      .when(refuse(7, 0, E1), T0 + 1)
      .thenRejected('INVALID_ARGUMENT', /none with index 7/);
  });
});

describe('a refusal', () => {
  test('sends the item to another node under a new id', () => {
    const g = given(place([E1, E1]), refuse(1, 0, E2));
    expect(itemsOf(g)).toMatchObject([
      { edge: E1, attempt: 0, refusedBy: [] },
      { edge: E2, attempt: 1, refusedBy: [E1], sandboxId: sandboxIdFor(requestId, 1, 1, E2) },
    ]);
    g.when(refuse(1, 0, edgeNamed(3)), T0 + 9).thenIgnored(/nothing in this report is new/);
  });

  test('with no other node gives the item up, with what the last node said', () => {
    given(place([E1]))
      .when(refuse(0, 0, null), T0 + 9)
      .thenEvents({ type: 'SandboxUnplaceable', error: { code: 'NO_CAPACITY', details: { lastCode: 'NODE_FULL', dimension: 'memoryMiB' } } as never });
    given(place([E1]))
      .when(refuse(0, 0, E1), T0 + 9)
      .thenEvents({ type: 'SandboxUnplaceable' });
    given(place([E1]), refuse(0, 0, E2))
      .when(refuse(0, 1, E1), T0 + 9)
      .thenEvents({ type: 'SandboxUnplaceable' });
    const given_up = given(place([E1]), refuse(0, 0, null));
    expect(itemsOf(given_up)).toMatchObject([{ sandboxId: null, edge: null, refusedBy: [E1], error: { code: 'NO_CAPACITY' } }]);
    given_up.when(refuse(0, 0, E2), T0 + 9).thenIgnored(/nothing in this report is new/);
  });

  test('that is not about room keeps its own code', () => {
    given(place([E1]))
      .when(refuse(0, 0, null, missing), T0 + 9)
      .thenEvents({ type: 'SandboxUnplaceable', error: missing });
    given(place([E1]))
      .when(refuse(0, 0, E2, missing), T0 + 9)
      .thenEvents({ type: 'SandboxesAssigned' });
    given(place([E1]))
      .when(refuse(0, 0, E2, impossible), T0 + 9)
      .thenEvents({ type: 'SandboxUnplaceable', error: impossible });
  });

  test('after the deadline is not sent on', () => {
    given(place([E1]))
      .when(refuse(0, 0, E2), T0 + DEADLINE_MS)
      .thenEvents({ type: 'SandboxUnplaceable', error: { code: 'DEADLINE_EXCEEDED' } as never });
    given(place([E1]))
      .when(refuse(0, 0, E2, missing), T0 + DEADLINE_MS)
      .thenEvents({ type: 'SandboxUnplaceable', error: missing });
  });

  test('is followed a bounded number of times', () => {
    const refusals = Array.from({ length: REQUEST_LIMITS.attemptsPerItem - 1 }, (_, attempt) => refuse(0, attempt, edgeNamed(attempt + 2)));
    given(place([E1]), ...refusals)
      .when(refuse(0, REQUEST_LIMITS.attemptsPerItem - 1, edgeNamed(99)), T0 + 99)
      .thenEvents({ type: 'SandboxUnplaceable', error: { code: 'NO_CAPACITY' } as never });
  });
});

describe('forwarding follows from the state', () => {
  const effectsOf = (...commands: RequestCommand[]) =>
    requestDefinition.pendingEffects(given(...commands).state as RequestState).filter((e) => e.type === 'ensureForwarded');

  test('one message per node and attempt, with every standing assignment', () => {
    const effects = effectsOf(place([E1, E1, E2, E1, null]));
    expect(effects.map((e) => [e.key, e.edge, e.assignments.map((a) => a.index)])).toEqual([
      ['forward:edge-1:0:0-1,3', E1, [0, 1, 3]],
      ['forward:edge-2:0:2', E2, [2]],
    ]);
  });

  test('a new item for the same node is new work; the rest stays as it was', () => {
    const before = effectsOf(place([E1, E1, E2]), refuse(0, 0, E2));
    const after = effectsOf(place([E1, E1, E2]), refuse(0, 0, E2), refuse(1, 0, E2, full));
    expect(before.map((e) => e.key)).toEqual(['forward:edge-2:1:0', 'forward:edge-1:0:1', 'forward:edge-2:0:2']);
    expect(after.map((e) => e.key)).toEqual(['forward:edge-2:1:0-1', 'forward:edge-2:0:2']);
  });

  test('who has just decided sends what is new alone: not the rest of a bundle that lost a part, nor what joined it', () => {
    const stateOf = (...commands: RequestCommand[]) => given(...commands).state as RequestState;
    const moved = stateOf(place([E1, E1, E2]), refuse(0, 0, E2));
    const both = stateOf(place([E1, E1, E2]), refuse(0, 0, E2), refuse(1, 0, E2, full));
    expect(newRequestEffects(stateOf(place([E1, E1, E2])), moved).map((e) => e.key)).toEqual(['forward:edge-2:1:0']);
    expect(newRequestEffects(moved, both).map((e) => e.key)).toEqual(['forward:edge-2:1:1']);
  });

  test('the key’s end is a deadline', () => {
    expect(requestDefinition.deadlines(given(place([E1])).state as RequestState)).toEqual([
      { kind: 'key', at: T0 + KEY_LIMITS.requestKeyLifetimeMs, version: 0 },
    ]);
  });
});
