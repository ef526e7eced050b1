import { describe, expect, test } from 'vitest';
import type { Commit } from '#bus/envelope.ts';
import { Rates } from './rates.ts';

const commit = (kind: Commit['kind'], at: number, ...events: Commit['events']) => ({ commit: { kind, at, events } as unknown as Commit });

describe('rates', () => {
  test('are of the last ten whole seconds', () => {
    let now = 1_000_000;
    const rates = new Rates({ now: () => now as Commit['at'] });
    rates.heard(commit('request', 999_500, { type: 'RequestAccepted', count: 30 }));
    rates.heard(commit('sandbox', 999_900, { type: 'SandboxStarted' }));
    rates.heard(commit('request', 999_900, { type: 'SandboxUnplaceable', error: { code: 'NO_CAPACITY' } }));
    rates.heard(commit('sandbox', 999_900, { type: 'SandboxFailed', error: { code: 'LAUNCH_FAILED', fault: 'infra' } }));
    expect(rates.perSecond()).toEqual({ asked: 3, started: 0.1, failed: 0.1, rejected: { NO_CAPACITY: 0.1 } });
    now += 11_000;
    expect(rates.perSecond()).toEqual({ asked: 0, started: 0, failed: 0, rejected: {} });
  });

  test('what was committed long ago, or by a clock far ahead, is not counted and not kept', () => {
    const rates = new Rates({ now: () => 1_000_000 as Commit['at'] });
    for (const at of [0, 980_000, 1_020_000]) rates.heard(commit('sandbox', at, { type: 'SandboxStarted' }));
    expect(rates.perSecond().started).toBe(0);
  });
});
