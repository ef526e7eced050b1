import { describe, expect, test } from 'vitest';
import { report } from './command.ts';
import { CHECKS, runDoctor, unfit } from './doctor.ts';
import { absent, type Check, limited, present } from './finding.ts';

const check = (name: string, required: boolean, probe: Check['probe']): Check => ({
  name,
  group: 'host',
  required,
  usedFor: 'a use',
  cost: 'a cost',
  fallback: required ? null : 'a fallback',
  probe,
});

describe('the table of checks', () => {
  test('names each check once', () => {
    const names = CHECKS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test('says for each what it is for and what its absence costs', () => {
    for (const { name, usedFor, cost } of CHECKS) expect([name, usedFor.length > 5, cost.length > 5]).toEqual([name, true, true]);
  });
});

describe('runDoctor', () => {
  test('reports a probe that throws as absent, with what it said', async () => {
    const [finding] = await runDoctor({
      checks: [
        check('broken', false, () => {
          throw new Error('no such device');
        }),
      ],
    });
    expect(finding).toMatchObject({ name: 'broken', status: 'absent', detail: 'no such device' });
  });

  test('only something required and absent makes a machine unfit', async () => {
    const findings = await runDoctor({
      checks: [
        check('a', true, () => present()),
        check('b', true, () => limited('less')),
        check('c', false, () => absent()),
        check('d', true, () => absent('gone')),
      ],
    });
    expect(unfit(findings).map(({ name }) => name)).toEqual(['d']);
  });
});

describe('report', () => {
  test('marks what is missing and names it again at the end', async () => {
    const text = report(await runDoctor({ checks: [check('a thing', true, () => absent('gone')), check('another', false, () => absent())] }));
    expect(text).toContain('MISSING');
    expect(text).toMatch(/a cost; instead: a fallback/);
    expect(text.trimEnd().split('\n').at(-1)).toBe('  a thing (gone)');
  });

  test('says so when nothing required is missing', async () => {
    expect(report(await runDoctor({ checks: [check('a', true, () => present('1.2'))] }))).toContain('This machine can run the platform.');
  });
});
