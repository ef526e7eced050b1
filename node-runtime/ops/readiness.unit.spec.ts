import { describe, expect, test } from 'vitest';
import { Checks } from './readiness.ts';

describe('readiness', () => {
  test('begins, serves, is degraded with reasons, and ends', async () => {
    let away: string | null = null;
    const checks = new Checks(['edge']);
    checks.add('edge', 'bus', () => away);
    checks.add('edge', 'bus', () => away); // two nodes of one process say the same once
    expect(await checks.look()).toEqual({ status: 'starting', roles: ['edge'], reasons: [] });
    checks.enter('serving');
    expect((await checks.look()).status).toBe('ready');
    away = 'gone';
    expect(await checks.look()).toEqual({ status: 'degraded', roles: ['edge'], reasons: [{ role: 'edge', check: 'bus', message: 'gone' }] });
    away = null;
    expect((await checks.look()).status).toBe('ready');
    checks.enter('ending');
    expect((await checks.look()).status).toBe('ending');
  });

  test('a check that throws is a reason', async () => {
    const checks = new Checks(['apiserver']);
    checks.enter('serving');
    const off = checks.add('apiserver', 'projection', () => Promise.reject(new Error('no answer')));
    expect((await checks.look()).reasons).toEqual([{ role: 'apiserver', check: 'projection', message: 'no answer' }]);
    off();
    expect((await checks.look()).status).toBe('ready');
  });
});
