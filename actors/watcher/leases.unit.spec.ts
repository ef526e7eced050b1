import { beforeEach, describe, expect, test } from 'vitest';
import { EdgeState } from '#bus/edge/schema.ts';
import { LeaseWatch } from './leases.ts';
import { LEASE_POLICY } from './limits.ts';

const LEASE_MS = 30_000;
const LIMIT_MS = LEASE_MS + LEASE_POLICY.graceMs;
const edge = (changes: Record<string, unknown> = {}): EdgeState =>
  EdgeState.parse({
    name: 'n1',
    status: 'active',
    generation: 1,
    instance: 'i',
    capacity: { sandboxes: 1, memoryMiB: 1, cpuMillis: 1, pids: 1, descriptors: 1 },
    backends: ['container'],
    registeredAt: 0,
    leaseMs: LEASE_MS,
    leaseUntil: 1_000,
    lostReason: null,
    ...changes,
  });

let watch: LeaseWatch;
beforeEach(() => {
  watch = new LeaseWatch();
  watch.learned(edge(), 0);
});
/** Reads the log each half second from `fromMs` on until a loss is found. */
const confirm = (fromMs: number, untilMs: number, read: (atMs: number) => EdgeState | null = () => edge()) => {
  for (let atMs = fromMs; atMs <= untilMs; atMs += 500) {
    const state = read(atMs);
    if (!state) watch.unreadable('n1' as never);
    const found = state && watch.confirmed(state, atMs);
    if (found) return { atMs, found };
  }
  return null;
};

describe('loss of an Edge', () => {
  test('is found after the lease, the grace and the confirmation, and not before', () => {
    expect(watch.overdue(LIMIT_MS)).toEqual([]);
    expect(watch.overdue(LIMIT_MS + 1)).toEqual(['n1']);
    const loss = confirm(LIMIT_MS + 1, 100_000);
    expect(loss?.atMs).toBe(LIMIT_MS + 1 + LEASE_POLICY.confirmMs);
    expect(loss?.found).toMatchObject({ type: 'DeclareLost', generation: 1, leaseUntil: 1_000, silentMs: loss?.atMs });
  });

  test('a renewal that the log shows starts the count again', () => {
    expect(confirm(LIMIT_MS + 1, 2 * LIMIT_MS, () => edge({ leaseUntil: 2_000 }))).toBeNull();
    expect(watch.overdue(2 * LIMIT_MS + 2)).toEqual(['n1']);
  });

  test('a log that cannot be read proves nothing', () => {
    expect(confirm(LIMIT_MS + 1, 500_000, () => null)).toBeNull();
    const flapping = confirm(500_000, 600_000, (atMs) => (atMs % 2_000 === 0 ? null : edge()));
    expect(flapping).toBeNull();
  });

  test('what a watcher did not hear may have been said', () => {
    watch.interrupted(LIMIT_MS);
    expect(watch.overdue(2 * LIMIT_MS)).toEqual([]);
    expect(watch.overdue(2 * LIMIT_MS + 1)).toEqual(['n1']);
  });

  test('older news and the news of its end do not revive it', () => {
    watch.learned(edge({ generation: 2, leaseUntil: 5_000 }), 1_000);
    watch.learned(edge({ leaseUntil: 900_000 }), 30_000);
    expect(watch.overdue(1_000 + LIMIT_MS + 1)).toEqual(['n1']);
    watch.learned(edge({ generation: 2, leaseUntil: 5_000, status: 'lost' }), 40_000);
    watch.learned(edge({ generation: 2, leaseUntil: 6_000 }), 41_000);
    expect(watch.overdue(900_000)).toEqual([]);
    watch.learned(edge({ generation: 3, leaseUntil: 7_000 }), 50_000);
    expect(watch.overdue(50_000 + LIMIT_MS + 1)).toEqual(['n1']);
  });
});
