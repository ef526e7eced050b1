import { describe, expect, test } from 'vitest';
import type { EdgeCommand } from '#bus/edge/schema.ts';
import type { DurationMs } from '#bus/units.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { edgeDefinition } from './edge.definition.ts';
import { address, LEASE_MS, lost, register, renew, retire, T0 } from './testing/samples.ts';

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
  test('is declared once, after the lease, of the newest generation', () => {
    const g = given([register('a'), T0]);
    g.when(lost(1), T0 + LEASE_MS).thenIgnored(/still holds/);
    g.when(lost(1), AFTER_LEASE).thenEvents({ type: 'EdgeLost', generation: 1 });
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
