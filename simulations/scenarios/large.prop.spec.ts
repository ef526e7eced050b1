import { describe, expect, test } from 'vitest';
import { policyOf } from '../report/policies.ts';
import { BURST, burst } from './burst.ts';
import { capacityOf } from './capacity.ts';
import { full } from './full.ts';
import { large } from './large.ts';
import { day, edgeLoss, preempt, upgrade } from './others.ts';
import type { Run } from './run.ts';
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

  test('day: each of its sandboxes runs and ends, and the log lets go of those that were deleted', { timeout: 240_000 }, () => {
    let kept = 0;
    const say = ({ cluster }: Run) => {
      kept = [...cluster.ground.store.actors()].filter(({ address }) => address.kind === 'sandbox').length;
    };
    const { violation, figures, virtualMs } = day({ seed: 1, scale: 0.001, say });
    expect(violation).toBeNull();
    expect(figures.started).toBe(3_000);
    expect(figures.ended + figures.lost).toBe(3_000);
    expect(virtualMs).toBeGreaterThan(24 * 3_600_000);
    expect(figures.admitted).toBe(3_000);
    expect(figures.waitedForLayers).toBeGreaterThan(1_500); // images are many, and each is new to most nodes
    expect(figures.waitedForLayers).toBeLessThan(3_000);
    expect(kept).toBeLessThan(1_500); // what ended since the last sweep
  });

  test('overflow: above four fifths of use seven in ten go to the cloud, and every other sandbox runs and ends', { timeout: 120_000 }, () => {
    const jobs = [10_000, 20_000, 30_000].map((atMs) => ({ atMs, sandboxes: 180, useMs: () => 15_000 }));
    const { violation, figures } = large({
      seed: 1,
      nodes: 2,
      overflow: true,
      projects: 2,
      tickMs: 1_000,
      safetyMs: 60_000,
      livenessMs: 60_000,
      jobs: () => jobs,
      cluster: { capacity: capacityOf({ sandboxes: 110, memoryMiB: 64 * 1_024 * 1_024, cpus: 188 }) },
    });
    expect(violation).toBeNull();
    expect(figures.overflowed).toBeGreaterThan(0.6 * 180);
    expect(figures.overflowed).toBeLessThan(0.8 * 180);
    expect(figures.ended + figures.overflowed).toBe(3 * 180);
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
