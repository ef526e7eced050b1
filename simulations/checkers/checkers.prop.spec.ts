import { describe, expect, test } from 'vitest';
import { SEEDED_BUGS } from '../faults/testing/seeded-bugs.ts';
import { smoke } from '../scenarios/smoke.ts';
import { INVARIANTS } from './checker.ts';

describe('every checker can fail', () => {
  test('there is a bug for each invariant; for INV-SCHEMA in large.prop.spec.ts', () =>
    expect(new Set(SEEDED_BUGS.map(({ invariant }) => invariant))).toEqual(new Set(INVARIANTS.filter((one) => one !== 'INV-SCHEMA'))));

  test.each(SEEDED_BUGS)('$invariant finds $name', ({ invariant, parts }) => {
    const found: string[] = [];
    for (let seed = 1; seed <= 12 && !found.includes(invariant); seed += 1) {
      const { violation } = smoke(seed, { parts: parts() });
      if (violation) found.push(violation.invariant);
    }
    expect(found).toContain(invariant);
  });
});
