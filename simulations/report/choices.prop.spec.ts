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
