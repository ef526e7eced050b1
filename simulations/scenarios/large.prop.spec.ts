import { describe, expect, test } from 'vitest';
import { policyOf } from '../report/policies.ts';
import { BURST, burst } from './burst.ts';
import { full } from './full.ts';
import { edgeLoss, preempt, upgrade } from './others.ts';
import { LIFT, programsOf } from './upgrade.ts';

/** The large scenarios at a size for every change: the same code, a hundredth of the numbers. */
describe('large scenarios, small', () => {
  test('full: what was asked for runs at once, survives its faults, and ends; twice the same', { timeout: 120_000 }, () => {
    const size = { seed: 1, nodes: 6, sandboxes: 600 };
    const first = full(size);
    expect(first.violation).toBeNull();
    expect(first.figures.started).toBe(600);
    expect(full(size).hash).toBe(first.hash);
  });

  test('burst: none lost, none doubled, and the overlay levels what stale views would heap up', { timeout: 120_000 }, () => {
    const size = { ...BURST, nodes: 64, sandboxes: 3_200, jobs: 4, perRequest: 100 };
    const ours = burst(size);
    expect(ours).toMatchObject({ violation: null, lost: 0, doubled: 0 });
    const herd = burst({ ...size, parts: policyOf('least-loaded') });
    expect(herd.maxOverMean).toBeGreaterThan(2 * ours.maxOverMean);
  });

  test.each([
    ['preempt', preempt],
    ['edge-loss', edgeLoss],
  ])('%s: nothing bad happens, and all of it ends', { timeout: 120_000 }, (_, scenario) => {
    const { violation, figures } = scenario({ seed: 1, scale: 0.003 });
    expect(violation).toBeNull();
    expect(figures.started).toBeGreaterThan(200);
    expect(figures.ended + figures.lost).toBe(figures.started);
  });

  test('upgrade: histories begin in one version of the records and end in the other, and fold to their states', { timeout: 120_000 }, () => {
    const { violation, figures, written } = upgrade({ seed: 1, scale: 0.003 });
    expect(violation).toBeNull();
    expect(figures.ended + figures.lost).toBe(figures.started);
    expect(written.mixed).toBeGreaterThan(100);
  });

  test.each([
    ['an upcaster that forgets a field', 'INV-REPLAY', programsOf(({ process: _, ...old }) => LIFT(old))],
    ['an old program that takes a newer version for its own', 'INV-SCHEMA', programsOf(LIFT, 2)],
  ] as const)('upgrade: %s is found by %s', { timeout: 120_000 }, (_, invariant, programs) => {
    expect(upgrade({ seed: 1, scale: 0.003, programs }).violation?.invariant).toBe(invariant);
  });
});
