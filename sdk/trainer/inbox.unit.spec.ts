import { describe, expect, test } from 'vitest';
import type { RolloutId } from '#bus/ids.ts';
import { TurnInbox } from './inbox.ts';
import { TRAINER_LIMITS } from './limits.ts';

const idOf = (n: number) => `ro-0-${n.toString(16).padStart(32, '0')}` as RolloutId;
const [A, B] = [idOf(1), idOf(2)];

describe('open turns', () => {
  test('are given once, oldest first, however often they are heard of', () => {
    const inbox = new TurnInbox();
    expect(inbox.opened({ id: A, version: 3, turn: 0, request: { value: 'a' } })).toBe(true);
    inbox.opened({ id: B, version: 3, turn: 0 });
    inbox.opened({ id: A, version: 3, turn: 0 });
    expect(inbox.takeTurn()).toMatchObject({ id: A, turn: 0 });
    expect(inbox.takeTurn()).toMatchObject({ id: B, turn: 0 });
    expect(inbox.opened({ id: A, version: 3, turn: 0 })).toBe(false);
    expect(inbox.takeTurn()).toBeUndefined();
    expect(inbox.opened({ id: A, version: 6, turn: 1 })).toBe(true);
    expect(inbox.takeTurn()).toMatchObject({ id: A, turn: 1 });
  });

  test('keep what they ask when a list names them again without it, and take it when it comes later', () => {
    const inbox = new TurnInbox();
    inbox.opened({ id: A, version: 3, turn: 0, request: { value: 'a' } });
    expect(inbox.opened({ id: A, version: 3, turn: 0 })).toBe(false);
    inbox.opened({ id: B, version: 3, turn: 0 });
    expect(inbox.opened({ id: B, version: 3, turn: 0, request: { value: 'b' } })).toBe(true);
    expect([inbox.takeTurn()?.request, inbox.takeTurn()?.request]).toEqual([{ value: 'a' }, { value: 'b' }]);
  });

  test('go when the rollout goes on, and old news does not bring them back', () => {
    const inbox = new TurnInbox();
    inbox.opened({ id: A, version: 3, turn: 0 });
    inbox.moved(A, 4);
    expect(inbox.takeTurn()).toBeUndefined();
    expect(inbox.opened({ id: A, version: 3, turn: 0 })).toBe(false);
    inbox.opened({ id: A, version: 5, turn: 1 });
    inbox.moved(A, 4);
    expect(inbox.takeTurn()).toMatchObject({ turn: 1 });
  });

  test('hold a bounded number of requests in memory; the others are known by their place', () => {
    const inbox = new TurnInbox();
    for (let n = 0; n <= TRAINER_LIMITS.requestsHeld; n += 1) inbox.opened({ id: idOf(n), version: 1, turn: 0, request: { value: n } });
    const taken = Array.from({ length: TRAINER_LIMITS.requestsHeld + 1 }, () => inbox.takeTurn());
    expect(taken.filter((place) => place?.request).length).toBe(TRAINER_LIMITS.requestsHeld);
    expect(taken.at(-1)?.request).toBeUndefined();
    inbox.opened({ id: A, version: 2, turn: 1, request: { value: 'again' } });
    expect(inbox.takeTurn()?.request).toEqual({ value: 'again' });
  });
});

test('an end is news once, and takes an open turn with it', () => {
  const inbox = new TurnInbox();
  inbox.opened({ id: A, version: 3, turn: 0 });
  inbox.ended(A, 5);
  inbox.ended(A, 5);
  expect([inbox.takeTurn(), inbox.takeEnded(), inbox.takeEnded()]).toEqual([undefined, A, undefined]);
  expect([inbox.hasEnded(A), inbox.hasEnded(B)]).toEqual([true, false]);
});
