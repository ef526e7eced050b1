import { describe, expect, test } from 'vitest';
import type { EdgeCommand } from '#bus/edge/schema.ts';
import type { DurationMs } from '#bus/units.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { edgeDefinition } from './edge.definition.ts';
import { address, cordon, fenceQueue, LEASE_MS, lost, register, renew, retire, T0, uncordon } from './testing/samples.ts';

/** Commands at given times, all of which must be accepted. */
const given = (...steps: [EdgeCommand, number][]) =>
  givenActor(
    edgeDefinition,
    address,
    historyOf(
      edgeDefinition,
      address,
      steps.map(([command, at]) => ({ command, at })),
    ),
  );
const AFTER_LEASE = T0 + LEASE_MS + 1;

describe('registration', () => {
  test('every one raises the generation, whatever the status', () => {
    given()
      .when(register('a'), T0)
      .thenEvents({ type: 'EdgeRegistered', generation: 1, instance: 'a', leaseUntil: (T0 + LEASE_MS) as never });
    given([register('a'), T0])
      .when(register('b'), T0 + 1)
      .thenEvents({ type: 'EdgeRegistered', generation: 2, instance: 'b' });
    given([register('a'), T0], [lost(1), AFTER_LEASE])
      .when(register('a'), AFTER_LEASE + 1)
      .thenEvents({ type: 'EdgeRegistered', generation: 2 });
    given([register('a'), T0], [retire(1), T0 + 1])
      .when(register('c'), T0 + 2)
      .thenEvents({ type: 'EdgeRegistered', generation: 2 });
  });

  test('of the same process again is ignored', () =>
    given([register('a'), T0])
      .when(register('a'), T0 + 1)
      .thenIgnored(/registered already/));

  test('with a nonsense lease or name is refused', () => {
    given()
      .when(register('a', 1 as DurationMs), T0)
      .thenRejected('LIMIT_OUT_OF_RANGE', /between/);
    givenActor(edgeDefinition, { ...address, id: 'Edge 1' }, [])
      .when(register('a'), T0)
      .thenRejected('INVALID_ARGUMENT', /edge name/);
  });
});

describe('lease', () => {
  test('is renewed by its holder only', () => {
    given([register('a'), T0])
      .when(renew(1, 'a'), T0 + 10)
      .thenEvents({ type: 'LeaseRenewed', leaseUntil: (T0 + 10 + LEASE_MS) as never });
    given([register('a'), T0])
      .when(renew(1, 'b'), T0 + 10)
      .thenRejected('EDGE_FENCED', /register again/);
    given([register('a'), T0], [register('b'), T0 + 1])
      .when(renew(1, 'a'), T0 + 10)
      .thenRejected('EDGE_FENCED', /generation 2 is the newest/);
    given()
      .when(renew(1, 'a'), T0)
      .thenRejected('EDGE_FENCED', /never registered/);
  });

  test('can be renewed late as long as nobody declared it lost, and never afterwards', () => {
    given([register('a'), T0])
      .when(renew(1, 'a'), AFTER_LEASE)
      .thenEvents({ type: 'LeaseRenewed' });
    given([register('a'), T0], [lost(1), AFTER_LEASE])
      .when(renew(1, 'a'), AFTER_LEASE + 1)
      .thenRejected('EDGE_FENCED', /lost/);
    given([register('a'), T0], [retire(1), T0 + 1])
      .when(renew(1, 'a'), T0 + 2)
      .thenRejected('EDGE_FENCED', /retired/);
  });

  test('never becomes shorter', () => {
    given([register('a'), T0])
      .when(renew(1, 'a', 1_000 as DurationMs), T0 + 10)
      .thenIgnored(/already lasts/);
    expect(edgeDefinition.deadlines(given([register('a'), T0]).state as never)).toEqual([{ kind: 'lease', at: T0 + LEASE_MS, version: 1 }]);
  });
});

describe('loss', () => {
  test('is declared once, of the newest generation', () => {
    const g = given([register('a'), T0]);
    g.when(lost(1), AFTER_LEASE).thenEvents({ type: 'EdgeLost', generation: 1 });
    expect(given([register('a'), T0], [lost(1), AFTER_LEASE]).state).toMatchObject({ status: 'lost', lostGeneration: 1, lostAt: AFTER_LEASE });
    given([register('a'), T0], [lost(1), AFTER_LEASE])
      .when(lost(1), AFTER_LEASE + 1)
      .thenIgnored(/already lost/);
    given([register('a'), T0], [register('b'), T0 + 1])
      .when(lost(1), AFTER_LEASE + 9)
      .thenIgnored(/not the newest/);
    given([register('a'), T0], [retire(1), T0 + 1])
      .when(lost(1), AFTER_LEASE)
      .thenIgnored(/already retired/);
    given()
      .when(lost(1), T0)
      .thenIgnored(/no such edge/);
  });

  test('needs a silence longer than the lease, of the lease that still is the newest', () => {
    given([register('a'), T0])
      .when(lost(1, 0, LEASE_MS), AFTER_LEASE)
      .thenIgnored(/still holds/);
    given([register('a'), T0], [renew(1, 'a'), T0 + 10])
      .when(lost(1), AFTER_LEASE)
      .thenIgnored(/renewed its lease since/);
  });

  test('does not compare the clocks of two machines', () => {
    for (const skewMs of [-3_600_000, 3_600_000])
      given([register('a'), T0])
        .when(lost(1), T0 + skewMs)
        .thenEvents({ type: 'EdgeLost', generation: 1 });
  });

  test('is remembered by the generations after it, and what was sent before the return is fenced', () => {
    const back = given([register('a'), T0], [lost(1), AFTER_LEASE], [register('b'), AFTER_LEASE + 1]);
    expect(back.state).toMatchObject({ status: 'active', generation: 2, lostGeneration: 1, fencedSequence: 7, lostReason: null });
    expect(given([register('a'), T0], [register('b'), T0 + 1]).state).toMatchObject({ lostGeneration: 0, fencedSequence: 0 });
  });
});

describe('the queue of a node that is back', () => {
  const back: [EdgeCommand, number][] = [
    [register('a'), T0],
    [lost(1), AFTER_LEASE],
    [register('b'), AFTER_LEASE + 1],
  ];

  test('is fenced once more, by its holder, once', () => {
    expect(given(...back).state).toMatchObject({ fencing: true });
    given(...back)
      .when(fenceQueue(2, 'b'), AFTER_LEASE + 2)
      .thenEvents({ type: 'QueueFenced', queueSequence: 9 });
    expect(given(...back, [fenceQueue(2, 'b'), AFTER_LEASE + 2]).state).toMatchObject({ fencing: false, fencedSequence: 9 });
    given(...back, [fenceQueue(2, 'b'), AFTER_LEASE + 2])
      .when(fenceQueue(2, 'b', 11), AFTER_LEASE + 3)
      .thenIgnored(/is fenced/);
    given(...back)
      .when(fenceQueue(2, 'a'), AFTER_LEASE + 2)
      .thenRejected('EDGE_FENCED');
  });

  test('is still to be fenced after a restart in between, and never moves back', () => {
    const again = given(...back, [register('c'), AFTER_LEASE + 2]);
    expect(again.state).toMatchObject({ fencing: true, fencedSequence: 7 });
    expect(given(...back, [fenceQueue(2, 'b', 3), AFTER_LEASE + 2]).state).toMatchObject({ fencing: false, fencedSequence: 7 });
  });

  test('of a node that was not lost needs nothing', () => {
    expect(given([register('a'), T0], [register('b'), T0 + 1]).state).toMatchObject({ fencing: false });
    given([register('a'), T0])
      .when(fenceQueue(1, 'a'), T0 + 1)
      .thenIgnored(/is fenced/);
  });
});

describe('cordon', () => {
  test('holds until it is lifted, also over registrations', () => {
    expect(given([register('a'), T0], [cordon, T0 + 1], [register('b'), T0 + 2]).state).toMatchObject({ cordoned: 'maintenance' });
    expect(given([register('a'), T0], [cordon, T0 + 1], [uncordon, T0 + 2]).state).toMatchObject({ cordoned: null });
    given([register('a'), T0], [cordon, T0 + 1])
      .when(cordon, T0 + 2)
      .thenIgnored(/already cordoned/);
    given([register('a'), T0])
      .when(uncordon, T0 + 2)
      .thenIgnored(/not cordoned/);
    given()
      .when(cordon, T0)
      .thenRejected('NODE_NOT_FOUND', /no node edge-1/);
  });
});

describe('retirement', () => {
  test('is for the holder of the newest generation', () => {
    given([register('a'), T0])
      .when(retire(1), T0 + 1)
      .thenEvents({ type: 'EdgeRetired' });
    given([register('a'), T0], [retire(1), T0 + 1])
      .when(retire(1), T0 + 2)
      .thenIgnored(/already retired/);
    given([register('a'), T0], [register('b'), T0 + 1])
      .when(retire(1), T0 + 2)
      .thenRejected('EDGE_FENCED');
    expect(edgeDefinition.deadlines(given([register('a'), T0], [retire(1), T0 + 1]).state as never)).toEqual([]);
  });
});
