/** Which failures are repeated, and what the caller is told when it was in vain. */
import { describe, expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import { BusFailure, type BusFailureKind } from './bus.ts';
import type { Clock } from './clock.ts';
import { type CallPolicy, backoffMs, callWithRetry, pauseMs } from './retry.ts';

/** Time passes only by sleeping. */
const scriptedClock = (): Clock => {
  let now = 0;
  return {
    now: () => now,
    random: () => 0.5,
    sleep: async (delayMs) => {
      now += delayMs;
    },
  };
};
const policy = (more: Partial<CallPolicy> = {}): CallPolicy => ({
  what: 'create',
  unavailable: 'API_UNAVAILABLE',
  attemptTimeoutMs: 100,
  giveUpAfterMs: 5_000,
  idempotent: true,
  ...more,
});

/** Fails as told, then succeeds; resolves with the number of attempts. */
const run = async (failures: readonly unknown[], more: Partial<CallPolicy> = {}): Promise<number> => {
  let attempts = 0;
  return callWithRetry(scriptedClock(), policy(more), async () => {
    attempts += 1;
    const failure = failures[attempts - 1];
    if (failure !== undefined) throw failure;
    return attempts;
  });
};
const bus = (kind: BusFailureKind): BusFailure => new BusFailure(kind, kind);
const answered = (code: Parameters<typeof DsecError.of>[0], more: Parameters<typeof DsecError.of>[2] = {}): DsecError => DsecError.of(code, code, more);

describe('repeated until it succeeds', () => {
  test.each<[string, unknown]>([
    ['nobody listens', bus('no_responders')],
    ['silence', bus('timeout')],
    ['a lost connection', bus('disconnected')],
    ['too much at once', bus('overloaded')],
    ['EDGE_UNAVAILABLE', answered('EDGE_UNAVAILABLE')],
    ['API_UNAVAILABLE', answered('API_UNAVAILABLE')],
    ['EDGE_FENCED', answered('EDGE_FENCED')],
    ['a sandbox whose node has just restarted', answered('INVALID_STATE', { retry: 'later' })],
  ])('%s', async (_, failure) => {
    expect(await run([failure, failure])).toBe(3);
  });
});

describe('told at once', () => {
  test.each<[string, unknown, string]>([
    ['a refusal', answered('IMAGE_NOT_FOUND'), 'IMAGE_NOT_FOUND'],
    ['a wrong state', answered('INVALID_STATE'), 'INVALID_STATE'],
    ['an answer DEADLINE_EXCEEDED', answered('DEADLINE_EXCEEDED'), 'DEADLINE_EXCEEDED'],
    ['no right', bus('forbidden'), 'FORBIDDEN'],
    ['a closed client', bus('closed'), 'CANCELLED'],
    ['a bug', new TypeError('x'), 'INTERNAL'],
  ])('%s', async (_, failure, code) => {
    await expect(run([failure])).rejects.toMatchObject({ code });
  });
});

describe('what must not be done twice', () => {
  test('is repeated when it certainly did not happen, and only then', async () => {
    expect(await run([bus('no_responders')], { idempotent: false })).toBe(2);
    await expect(run([bus('timeout')], { idempotent: false })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED', outcome: 'unknown' });
    await expect(run([bus('disconnected')], { idempotent: false })).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE', outcome: 'unknown' });
  });
});

describe('given up', () => {
  test('with the outcome that all attempts together allow', async () => {
    const always = Array.from({ length: 1_000 }, () => bus('no_responders'));
    await expect(run(always)).rejects.toMatchObject({ code: 'API_UNAVAILABLE', outcome: 'not_applied' });
    await expect(run([bus('disconnected'), ...always])).rejects.toMatchObject({ code: 'API_UNAVAILABLE', outcome: 'unknown' });
  });

  test('within the caller’s time', async () => {
    const clock = scriptedClock();
    await callWithRetry(clock, policy(), async () => Promise.reject(bus('no_responders'))).catch(() => {});
    expect(clock.now()).toBeLessThanOrEqual(5_000);
  });
});

test('pauses double up to the limit and are spread', () => {
  for (let n = 0; n < 20; n += 1) {
    expect(backoffMs(n, 0)).toBeGreaterThanOrEqual(SDK_LIMITS.retryFirstMs / 2);
    expect(backoffMs(n, 0.999)).toBeLessThanOrEqual(SDK_LIMITS.retryMaxMs);
    expect(backoffMs(n, 0.999)).toBeGreaterThan(backoffMs(n, 0));
  }
});

test('an overloaded platform’s own pause is kept, with jitter on top, and bounded', () => {
  const overloaded = (retryAfterMs: number) => answered('OVERLOADED', { details: { retryAfterMs } });
  expect(pauseMs(overloaded(500), 0, 0)).toBe(500);
  expect(pauseMs(overloaded(500), 0, 1)).toBe(750);
  expect(pauseMs(overloaded(3_600_000), 0, 0)).toBe(SDK_LIMITS.retryAfterMaxMs);
  expect(pauseMs(answered('OVERLOADED'), 0, 1)).toBe(backoffMs(0, 1));
});
