/** Whatever order, however often, and with whatever missing, the news of a create lead to the same result. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wireError } from '#bus/errors.ts';
import { type EdgeName, sandboxIdFor } from '#bus/ids.ts';
import { EDGE, requestIdOf, requestState, sandboxState } from '../testing/records.ts';
import { Assembly } from './assembly.ts';

const KEY = 'k';
const id = requestIdOf(KEY);
const OTHER = 'node-2' as EdgeName;

describe('one item', () => {
  test('a sandbox may be heard of before its assignment', () => {
    const assembly = new Assembly(id, 1, 0);
    assembly.applySandbox(3, sandboxState(id, 0, 0, 'running'), 1);
    assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }]), 2);
    expect(assembly.done).toBe(true);
    expect(assembly.items[0]?.outcome).toMatchObject({ ok: true, state: { status: 'running' } });
  });

  test('an older version of the same sandbox changes nothing', () => {
    const assembly = new Assembly(id, 1, 0);
    assembly.applySandbox(2, sandboxState(id, 0, 0, 'starting'), 1);
    expect(assembly.applySandbox(1, sandboxState(id, 0, 0, 'running'), 2)).toBeUndefined();
    expect(assembly.done).toBe(false);
  });

  test('news of an attempt that was given up is dropped, the next one is followed', () => {
    const assembly = new Assembly(id, 1, 0);
    assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }]), 1);
    assembly.applyRequest(2, requestState(KEY, [{ attempt: 1, edge: OTHER }]), 2);
    expect(assembly.items[0]?.sandboxId).toBe(sandboxIdFor(id, 0, 1, OTHER));
    assembly.applySandbox(9, sandboxState(id, 0, 0, 'failed'), 3);
    expect(assembly.done).toBe(false);
    assembly.applySandbox(1, sandboxState(id, 0, 1, 'running', { edge: OTHER }), 4);
    expect(assembly.items[0]?.outcome?.ok).toBe(true);
  });

  test('an older state of the request does not bring back its assignment', () => {
    const assembly = new Assembly(id, 1, 0);
    assembly.applyRequest(2, requestState(KEY, [{ attempt: 1, edge: OTHER }]), 1);
    expect(assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }]), 2)).toEqual([]);
    expect(assembly.items[0]?.attempt).toBe(1);
  });

  test.each([
    ['failed', 'SANDBOX_FAILED'],
    ['stopped', 'SANDBOX_ENDED'],
  ] as const)('%s before it ran is %s', (status, code) => {
    const assembly = new Assembly(id, 1, 0);
    assembly.applySandbox(2, sandboxState(id, 0, 0, status), 1);
    expect(assembly.items[0]?.outcome).toMatchObject({ ok: false, error: { code } });
  });

  test('another request’s sandbox is not ours', () => {
    const assembly = new Assembly(id, 1, 0);
    expect(assembly.applySandbox(2, sandboxState(requestIdOf('other'), 0, 0, 'running'), 1)).toBeUndefined();
  });
});

describe('a key that may be taken', () => {
  test('nothing counts before the request has shown the hash that the create was answered with', () => {
    const assembly = new Assembly(id, 1, 0, true);
    assembly.applySandbox(2, sandboxState(id, 0, 0, 'running'), 1);
    assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }], 'mine'), 2);
    expect(assembly.items[0]?.sandboxId).toBeNull();
    assembly.expectBody('mine');
    assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }], 'mine'), 3);
    assembly.applySandbox(2, sandboxState(id, 0, 0, 'running'), 4);
    expect([assembly.conflict, assembly.done]).toEqual([false, true]);
  });

  test('another hash is a conflict', () => {
    const assembly = new Assembly(id, 1, 0, true);
    assembly.expectBody('mine');
    assembly.applyRequest(1, requestState(KEY, [{ attempt: 0, edge: EDGE }], 'theirs'), 1);
    expect([assembly.conflict, assembly.done]).toEqual([true, false]);
  });
});

describe('any delivery', () => {
  // Item 0 runs at once, 1 runs at its second attempt, 2 fails, 3 is given up.
  const news = [
    (a: Assembly) =>
      a.applyRequest(
        1,
        requestState(
          KEY,
          [EDGE, EDGE, EDGE, EDGE].map((edge) => ({ attempt: 0, edge })),
        ),
        1,
      ),
    (a: Assembly) => a.applySandbox(1, sandboxState(id, 0, 0, 'starting'), 1),
    (a: Assembly) => a.applySandbox(2, sandboxState(id, 0, 0, 'running'), 1),
    (a: Assembly) => a.applySandbox(3, sandboxState(id, 0, 0, 'paused'), 1),
    (a: Assembly) => a.applySandbox(1, sandboxState(id, 2, 0, 'starting'), 1),
    (a: Assembly) => a.applyRequest(2, finalRequest(), 1),
    (a: Assembly) => a.applySandbox(1, sandboxState(id, 1, 1, 'starting', { edge: OTHER }), 1),
  ];
  const truth = [
    (a: Assembly) => a.applyRequest(2, finalRequest(), 2),
    (a: Assembly) => a.applySandbox(3, sandboxState(id, 0, 0, 'paused'), 2),
    (a: Assembly) => a.applySandbox(2, sandboxState(id, 1, 1, 'running', { edge: OTHER }), 2),
    (a: Assembly) => a.applySandbox(2, sandboxState(id, 2, 0, 'failed', { failure: wireError('START_FAILED', 'no') }), 2),
  ];
  const finalRequest = () =>
    requestState(KEY, [
      { attempt: 0, edge: EDGE },
      { attempt: 1, edge: OTHER },
      { attempt: 0, edge: EDGE },
      { attempt: 2, edge: null, error: wireError('NO_CAPACITY', 'full') },
    ]);

  test('lost, doubled and reordered news, then one catch-up, give the same outcome', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(news.length - 1), { maxLength: 30 }), (order) => {
        const assembly = new Assembly(id, 4, 0);
        for (const n of order) news[n]?.(assembly);
        for (const tell of truth) tell(assembly);
        expect(assembly.done).toBe(true);
        expect(assembly.pending).toEqual([]);
        expect(assembly.items.map(({ outcome }) => (outcome?.ok ? outcome.state.id : outcome?.error.code))).toEqual([
          sandboxIdFor(id, 0, 0, EDGE),
          sandboxIdFor(id, 1, 1, OTHER),
          'START_FAILED',
          'NO_CAPACITY',
        ]);
      }),
      { numRuns: 2_000 },
    );
  });
});
