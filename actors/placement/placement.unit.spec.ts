import { describe, expect, test } from 'vitest';
import { Beat, type Capacity } from '#bus/edge/schema.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { wireError } from '#bus/errors.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CpuMillis, MiB, TimestampMs } from '#bus/units.ts';
import { spec as anySpec } from '../sandbox/testing/samples.ts';
import { choose } from './choose.ts';
import { Fleet, type FleetView } from './fleet.ts';
import { FLEET_LIMITS, PLACEMENT_POLICY } from './limits.ts';

const T0 = 1_700_000_000_000 as TimestampMs;
const after = (ms: number) => (T0 + ms) as TimestampMs;
const spec: SandboxSpec = { ...anySpec, limits: { ...anySpec.limits, memoryMiB: 100 as MiB, cpuMillis: 100 as CpuMillis, pids: 10 } };
const sized = (sandboxes: number): Capacity => ({
  sandboxes,
  memoryMiB: (sandboxes * 100) as MiB,
  cpuMillis: (sandboxes * 100) as CpuMillis,
  pids: sandboxes * 10,
  diskMiB: (sandboxes * 100) as MiB,
  descriptors: sandboxes * 4,
});
const project = 'acme' as ProjectName;
const named = (n: number) => `edge-${n}` as EdgeName;
const beat = (edge: EdgeName, over: Partial<Beat> = {}): Beat =>
  Beat.parse({
    v: 1,
    edge,
    generation: 1,
    at: T0,
    backends: ['container'],
    capacity: sized(1_000),
    used: sized(0),
    accepting: true,
    running: {},
    ...over,
  });
const fleetOf = (...beats: Beat[]): Fleet => {
  const fleet = new Fleet();
  for (const b of beats) fleet.observe(b, T0);
  return fleet;
};
const chooseFrom = (fleet: FleetView, count: number, seed = 1, exclude: EdgeName[] = []) => choose({ project, spec, count, fleet, seed, exclude });
const countsOf = (choices: readonly (EdgeName | null)[]) => {
  const counts = new Map<EdgeName | null, number>();
  for (const choice of choices) counts.set(choice, (counts.get(choice) ?? 0) + 1);
  return counts;
};

test('suspect nodes are chosen only while there is no healthy one, and a clock set back silences nobody', () => {
  const fleet = new Fleet();
  for (let sequence = 1; sequence <= 3; sequence += 1) {
    fleet.observe(beat(named(1), { sequence, at: after(-60_000 * sequence) }), T0);
    fleet.observe(beat(named(2), { sequence }), T0);
  }
  expect(fleet.view(T0).map(({ edge }) => edge)).toEqual([named(2)]);
  fleet.observe(beat(named(2), { sequence: 4, accepting: false }), T0);
  expect(fleet.view(T0).map(({ edge }) => edge)).toEqual([named(1)]);
});

describe('the choice', () => {
  test('one node goes the same way as many', () => {
    expect(chooseFrom(fleetOf(beat(named(1))).view(T0), 3)).toEqual([named(1), named(1), named(1)]);
    expect(chooseFrom([], 2)).toEqual([null, null]);
  });

  test('decisions that no beat shows yet never turn a create away: they may already have ended, and the Edge has the final say', () => {
    const fleet = fleetOf(beat(named(1), { capacity: sized(4) }), beat(named(2), { capacity: sized(4), used: sized(4) }));
    fleet.noteAssigned(named(1), 4, spec, project, T0);
    expect(chooseFrom(fleet.view(T0), 3)).toEqual([named(1), named(1), named(1)]);
    expect(chooseFrom(fleet.view(T0), 5)).toEqual([named(1), named(1), named(1), named(1), null]);
  });

  test('is a function of its seed', () => {
    const view = fleetOf(...Array.from({ length: 50 }, (_, i) => beat(named(i)))).view(T0);
    expect(chooseFrom(view, 1, 7)).toEqual(chooseFrom(view, 1, 7));
    expect(new Set(Array.from({ length: 40 }, (_, seed) => chooseFrom(view, 1, seed)[0])).size).toBeGreaterThan(20);
  });

  test('leaves out nodes without the backend, without room, not accepting, silent, or excluded', () => {
    const fleet = fleetOf(
      beat(named(1), { backends: ['microvm'] }),
      beat(named(2), { used: sized(1_000) }),
      beat(named(3), { accepting: false }),
      beat(named(4)),
      beat(named(5), { capacity: { ...sized(1_000), memoryMiB: 99 as MiB } }),
    );
    fleet.observe(beat(named(6), { at: after(FLEET_LIMITS.freshMs) }), after(FLEET_LIMITS.freshMs + 1));
    expect(countsOf(chooseFrom(fleet.view(after(FLEET_LIMITS.freshMs + 1)), 4))).toEqual(new Map([[named(6), 4]]));
    expect(countsOf(chooseFrom(fleet.view(T0), 1, 1, [named(6)]))).toEqual(new Map([[named(4), 1]]));
    expect(chooseFrom(fleet.view(T0), 1, 1, [named(6), named(4)])).toEqual([null]);
  });

  test('takes the least loaded of what it samples', () => {
    const view = fleetOf(beat(named(1), { used: sized(500) }), beat(named(2), { used: sized(100) }), beat(named(3), { used: sized(900) })).view(T0);
    for (let seed = 0; seed < 20; seed += 1) expect(chooseFrom(view, 1, seed)).toEqual([named(2)]);
  });

  test('the fullest dimension counts', () => {
    const manyPids = { ...sized(10), pids: 9_000 };
    const view = fleetOf(beat(named(1), { used: manyPids }), beat(named(2), { used: sized(500) })).view(T0);
    expect(chooseFrom(view, 1)).toEqual([named(2)]);
  });

  test('fills what is left and answers null for the rest', () => {
    const view = fleetOf(beat(named(1), { used: sized(998) }), beat(named(2), { used: sized(999) })).view(T0);
    expect(countsOf(chooseFrom(view, 5))).toEqual(
      new Map([
        [named(1), 2],
        [named(2), 1],
        [null, 2],
      ]),
    );
  });

  test('a group goes in level blocks to few nodes', () => {
    const view = fleetOf(...Array.from({ length: 160 }, (_, i) => beat(named(i)))).view(T0);
    const choices = chooseFrom(view, 256);
    const counts = countsOf(choices);
    const { nodesPerChunkMax } = PLACEMENT_POLICY;
    expect(counts.size).toBe(nodesPerChunkMax);
    expect(Math.max(...counts.values())).toBe(Math.ceil(256 / nodesPerChunkMax));
    expect(Math.min(...counts.values())).toBe(Math.floor(256 / nodesPerChunkMax));
    const changes = choices.filter((edge, i) => i > 0 && edge !== choices[i - 1]).length;
    expect(changes).toBe(counts.size - 1);
    expect(countsOf(chooseFrom(view, 32)).size).toBe(8);
    expect(countsOf(chooseFrom(view, 3)).size).toBe(1);
  });

  test('takes more nodes when few do not hold the group', () => {
    const view = fleetOf(...Array.from({ length: 100 }, (_, i) => beat(named(i), { used: sized(997) }))).view(T0);
    const counts = countsOf(chooseFrom(view, 256));
    expect(counts.has(null)).toBe(false);
    expect(Math.max(...counts.values())).toBe(3);
  });

  test.each([1, 2, 3])('the paper’s largest job ends up level: 32,768 over 160 nodes, max/mean ≤ 1.05 (seed %i)', (salt) => {
    const fleet = fleetOf(...Array.from({ length: 160 }, (_, i) => beat(named(i))));
    const counts = new Map<EdgeName, number>();
    for (let chunk = 0; chunk < 128; chunk += 1)
      for (const [edge, count] of countsOf(chooseFrom(fleet.view(T0), 256, chunk * 7_919 + salt))) {
        if (!edge) throw new Error('there is room for all of them');
        counts.set(edge, (counts.get(edge) ?? 0) + count);
        fleet.noteAssigned(edge, count, spec, project, T0);
      }
    const mean = 32_768 / 160;
    expect(Math.max(...counts.values()) / mean).toBeLessThanOrEqual(1.05);
    expect(counts.size).toBe(160);
  });
});

describe('whom and where', () => {
  const rival = 'rival' as ProjectName;
  const asking = (over: Partial<SandboxSpec>, fleet: FleetView, count = 1) =>
    choose({ project, spec: { ...spec, ...over }, count, fleet, seed: 1, exclude: [] });

  test('required labels must be there, with their values', () => {
    const view = fleetOf(beat(named(1), { labels: { gpu: 'a100' } }), beat(named(2), { labels: { gpu: 'h100', zone: 'b' } })).view(T0);
    expect(asking({ require: { gpu: 'h100' } }, view)).toEqual([named(2)]);
    expect(asking({ require: { gpu: 'h100', zone: 'a' } }, view)).toEqual([null]);
  });

  test('who must be apart goes to nodes without others, and others stay away from reserved ones', () => {
    const view = fleetOf(beat(named(1), { running: { rival: 3 } }), beat(named(2), { running: { acme: 9 } })).view(T0);
    expect(asking({ isolation: 'requireApart' }, view)).toEqual([named(2)]);
    const reserved = fleetOf(beat(named(1), { running: { rival: 1 }, reservedFor: rival })).view(T0);
    expect(asking({}, reserved)).toEqual([null]);
  });

  test('who prefers to be apart is so while there is room, and shares when there is none', () => {
    const view = fleetOf(beat(named(1), { running: { rival: 3 } }), beat(named(2), { used: sized(998) })).view(T0);
    expect(countsOf(asking({ isolation: 'preferApart' }, view, 4))).toEqual(
      new Map([
        [named(1), 2],
        [named(2), 2],
      ]),
    );
  });

  test('a decision that requires a node alone keeps others away before any beat says so', () => {
    const fleet = fleetOf(beat(named(1)));
    fleet.noteAssigned(named(1), 1, { ...spec, isolation: 'requireApart' }, rival, T0);
    expect(asking({}, fleet.view(T0))).toEqual([null]);
  });

  test('layers that lie ready make a node preferred, not its load forgotten', () => {
    const ready = (used: number) => fleetOf(beat(named(1), { layers: [...spec.layers], used: sized(used) }), beat(named(2), { used: sized(100) })).view(T0);
    expect(asking({}, ready(150))).toEqual([named(1)]);
    expect(asking({}, ready(300))).toEqual([named(2)]);
  });

  test('a node that has failed of late is avoided, until that is long enough ago or nobody else has room', () => {
    const fleet = fleetOf(beat(named(1)), beat(named(2), { used: sized(600) }));
    const failed = wireError('LAUNCH_FAILED', 'no');
    for (let n = 0; n < 3; n += 1) fleet.noteFailed(named(1), failed, T0);
    expect(asking({}, fleet.view(T0))).toEqual([named(2)]);
    expect(asking({}, fleetOf(beat(named(1))).view(T0))).toEqual([named(1)]);
    const later = after(4 * FLEET_LIMITS.failureHalfLifeMs);
    for (const n of [1, 2]) fleet.observe(beat(named(n), { at: later, used: sized(n === 1 ? 0 : 600) }), later);
    expect(asking({}, fleet.view(later))).toEqual([named(1)]);
    fleet.noteFailed(named(1), wireError('USER_NOT_FOUND', 'the image’s own fault'), later);
    expect(fleet.view(later)[0]?.failures).toBeLessThan(PLACEMENT_POLICY.avoidAbove);
  });
});

describe('the fleet view', () => {
  const usedOf = (fleet: Fleet, at: TimestampMs) => fleet.view(at)[0]?.used.sandboxes;

  test('forgets a silent node and knows when there is nobody', () => {
    const fleet = fleetOf(beat(named(1)));
    expect(fleet.hasCandidates(after(FLEET_LIMITS.freshMs))).toBe(true);
    expect(fleet.hasCandidates(after(FLEET_LIMITS.freshMs + 1))).toBe(false);
    expect(fleet.view(after(FLEET_LIMITS.freshMs + 1))).toEqual([]);
    expect(new Fleet().hasCandidates(T0)).toBe(false);
    expect(fleetOf(beat(named(1), { accepting: false })).hasCandidates(T0)).toBe(false);
  });

  test('knows whether every living node was heard since a moment', () => {
    const fleet = fleetOf(beat(named(1)), beat(named(2)));
    expect(fleet.isHeardSince(T0, after(10))).toBe(true);
    expect(fleet.isHeardSince(after(1), after(10))).toBe(false);
    fleet.observe(beat(named(1), { at: after(5) }), after(5));
    expect(fleet.isHeardSince(after(1), after(10))).toBe(false);
    fleet.observe(beat(named(2), { at: after(6) }), after(6));
    expect(fleet.isHeardSince(after(1), after(10))).toBe(true);
    fleet.observe(beat(named(1), { at: after(2_000) }), after(2_000));
    expect(fleet.isHeardSince(after(1_000), after(6 + FLEET_LIMITS.freshMs + 1))).toBe(true); // the other has fallen silent
  });

  test('lays its own decisions over the beats until the beats show them', () => {
    const fleet = fleetOf(beat(named(1), { used: sized(5) }));
    fleet.noteAssigned(named(1), 10, spec, project, after(100));
    expect(fleet.view(after(100))[0]?.used).toMatchObject({ sandboxes: 15, memoryMiB: 1_500, cpuMillis: 1_500, pids: 150 });
    fleet.observe(beat(named(1), { at: after(200), used: sized(5) }), after(200));
    expect(usedOf(fleet, after(200))).toBe(15);
    const settledAt = after(100 + FLEET_LIMITS.settleMs);
    fleet.observe(beat(named(1), { at: settledAt, used: sized(15) }), settledAt);
    expect(usedOf(fleet, settledAt)).toBe(15);
  });

  test('a decision whose place in the queue is known stays until a beat reflects that place, and goes when nothing came of it', () => {
    const fleet = fleetOf(beat(named(1)));
    const mark = fleet.noteAssigned(named(1), 10, spec, project, T0);
    mark.forwarded(77);
    const late = after(FLEET_LIMITS.settleMs * 3);
    fleet.observe(beat(named(1), { at: late, admittedThrough: 76 }), late);
    expect(usedOf(fleet, late)).toBe(10);
    fleet.observe(beat(named(1), { at: after(5_000), admittedThrough: 77, used: sized(4) }), after(5_000));
    expect(usedOf(fleet, after(5_000))).toBe(4);
    fleet.noteAssigned(named(1), 3, spec, project, after(5_000)).cancel();
    expect(usedOf(fleet, after(5_000))).toBe(4);
  });

  test('takes no beat of an earlier process, nor one that was overtaken', () => {
    const fleet = fleetOf(beat(named(1), { generation: 2, used: sized(7) }));
    fleet.observe(beat(named(1), { generation: 1, at: after(50), used: sized(1) }), after(50));
    fleet.observe(beat(named(1), { generation: 2, at: (T0 - 1) as TimestampMs, used: sized(1) }), after(60));
    expect(usedOf(fleet, after(60))).toBe(7);
    fleet.observe(beat(named(1), { generation: 3, at: (T0 - 9) as TimestampMs, used: sized(0) }), after(70));
    expect(usedOf(fleet, after(70))).toBe(0);
  });

  test('keeps a bounded number of decisions and nodes, and loses none of the load', () => {
    const fleet = fleetOf(beat(named(1), { capacity: sized(100_000) }));
    const decisions = FLEET_LIMITS.decisionsPerNode * 3;
    for (let i = 0; i < decisions; i += 1) fleet.noteAssigned(named(1), 2, spec, project, T0);
    fleet.noteAssigned(named(2), 2, spec, project, T0); // unknown: nothing to lay it over
    expect(usedOf(fleet, T0)).toBe(decisions * 2);

    const crowd = new Fleet();
    for (let i = 0; i < FLEET_LIMITS.nodes + 5; i += 1) crowd.observe(beat(named(i)), T0);
    expect(crowd.view(T0).length).toBe(FLEET_LIMITS.nodes);
    crowd.observe(beat(named(99_999)), after(FLEET_LIMITS.freshMs + 1));
    expect(crowd.view(after(FLEET_LIMITS.freshMs + 1)).map((n) => n.edge)).toEqual([named(99_999)]);
  });
});

describe('several placements', () => {
  /** Two empty nodes beside six with 40 each; each placement gives 80 and sees the same beats. */
  const fullest = (placements: number, counted: number): number => {
    const used = new Map(Array.from({ length: 8 }, (_, n) => [named(n), n < 2 ? 0 : 40]));
    const view = fleetOf(...[...used].map(([edge, sandboxes]) => beat(edge, { used: sized(sandboxes) }))).view(T0);
    for (let seed = 1; seed <= placements; seed += 1)
      for (const edge of choose({ project, spec, count: 80, fleet: view, placements: counted, seed, exclude: [] }))
        if (edge) used.set(edge, (used.get(edge) ?? 0) + 1);
    return Math.max(...used.values());
  };

  test('each makes up for its part of a difference, not for all of it', () => {
    expect(fullest(4, 1)).toBe(160);
    expect(fullest(4, 4)).toBeLessThanOrEqual(110);
    expect(fullest(1, 1)).toBe(40); // alone it fills them up to the others' level
  });
});
