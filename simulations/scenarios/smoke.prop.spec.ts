import { describe, expect, test } from 'vitest';
import { firstDifference } from '../kernel/first-difference.ts';
import { smoke } from './smoke.ts';
import { FIXED_SEEDS } from './smoke-seeds.ts';

const FRESH = 20;
const violationOf = (seed: number): string | undefined => {
  const { violation } = smoke(seed);
  return violation ? `${violation.message}\n  again: npm run sim -- smoke --seed ${seed}` : undefined;
};

describe('smoke', () => {
  test.each(FIXED_SEEDS)('seed $seed', ({ seed }) => expect(violationOf(seed)).toBeUndefined());

  test.each(Array.from({ length: FRESH }, () => Math.floor(Math.random() * 2 ** 31)))('fresh seed %i', (seed) => expect(violationOf(seed)).toBeUndefined());

  test('a seed is a run: twice the same, step by step', () => {
    expect(
      firstDifference(
        (trace) => smoke(3, { trace }),
        (trace) => smoke(3, { trace }),
      ),
    ).toBeNull();
    expect(smoke(3).hash).not.toBe(smoke(5).hash);
  });
});
