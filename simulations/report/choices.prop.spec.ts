import { describe, expect, test } from 'vitest';
import { CHOICES, choicesOf } from './choices.ts';
import { policyOf } from './policies.ts';

const SEEDS = Array.from({ length: 10 }, (_, i) => i + 1);

/** The unit's size: 32,000 on 160 nodes within a second, by four placements that do not see each other's choices. */
describe('spread of a burst by the choices alone', () => {
  test.each(SEEDS)('seed %i: the fullest node has at most 1.15 times the mean', (seed) => expect(choicesOf({ ...CHOICES, seed })).toBeLessThanOrEqual(1.15));

  test('whoever forgets its own choices heaps them up', () => {
    const herd = choicesOf({ ...CHOICES, parts: policyOf('least-loaded') });
    expect(herd).toBeGreaterThan(3 * choicesOf(CHOICES));
  });
});

/** A long burst on an uneven fleet: what placements do not know of each other matters most with old views and many of them. */
describe('no policy among those compared spreads better, whatever the age of views and the number of placements', () => {
  const LONG = { ...CHOICES, jobs: 16, withinMs: 10_000, before: 16_000 };
  const meanOf = (policy: string, over: Partial<typeof CHOICES>): number =>
    [1, 2].reduce((sum, seed) => sum + choicesOf({ ...LONG, ...over, seed, parts: policyOf(policy) }), 0) / 2;

  test.each([
    { viewAgeMs: 100, placements: 4 },
    { viewAgeMs: 1_000, placements: 1 },
    { viewAgeMs: 1_000, placements: 8 },
    { viewAgeMs: 5_000, placements: 4 },
    { viewAgeMs: 5_000, placements: 8 },
  ])('views of $viewAgeMs ms, $placements placements', (over) => {
    const ours = meanOf('ours', over);
    for (const other of ['k2', 'k2+', 'k3+', 'least-loaded+']) expect(ours, other).toBeLessThanOrEqual(1.03 * meanOf(other, over));
  });
});
