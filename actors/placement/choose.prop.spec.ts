/** Whatever the fleet looks like: nothing beyond the room of a node, nothing left out while there is room. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import type { CpuMillis, MiB } from '#bus/units.ts';
import { spec as anySpec } from '../sandbox/testing/samples.ts';
import { choose } from './choose.ts';
import type { FleetNode } from './fleet.ts';
import { randomFrom, shuffled } from './random.ts';

const spec = { ...anySpec, limits: { ...anySpec.limits, memoryMiB: 64 as MiB, cpuMillis: 50 as CpuMillis, pids: 16, diskMiB: 40 as MiB } };
const project = 'acme' as ProjectName;
const amount = fc.nat(20_000);
const capacity = fc.record({
  sandboxes: fc.nat(300),
  memoryMiB: amount,
  cpuMillis: amount,
  pids: amount,
  diskMiB: amount,
  descriptors: amount,
}) as fc.Arbitrary<FleetNode['capacity']>;
const fleet = fc
  .array(fc.record({ backends: fc.constantFrom(['container' as const], ['microvm' as const], []), capacity, used: capacity }), { maxLength: 40, size: 'max' })
  .map((nodes) =>
    nodes.map((node, i): FleetNode => ({ ...node, edge: `edge-${i}` as EdgeName, running: {}, reservedFor: null, labels: {}, layers: new Set(), failures: 0 })),
  );

const roomOf = ({ backends, capacity: c, used: u }: FleetNode) =>
  backends.some((b) => b === 'container')
    ? Math.max(
        0,
        Math.min(
          c.sandboxes - u.sandboxes,
          Math.floor((c.memoryMiB - u.memoryMiB) / 64),
          Math.floor((c.cpuMillis - u.cpuMillis) / 50),
          Math.floor((c.pids - u.pids) / 16),
          Math.floor((c.diskMiB - u.diskMiB) / 40),
        ),
      )
    : 0;

test('fits, places all it can, and keeps to its exclusions', () => {
  fc.assert(
    fc.property(fleet, fc.integer({ min: 1, max: 256 }), fc.integer(), fc.nat(40), (nodes, count, seed, excludedIndex) => {
      const exclude = [`edge-${excludedIndex}` as EdgeName];
      const choices = choose({ project, spec, count, fleet: nodes, seed, exclude });
      expect(choices.length).toBe(count);
      const room = new Map(nodes.map((n) => [n.edge, exclude.includes(n.edge) ? 0 : roomOf(n)]));
      for (const edge of choices) if (edge) room.set(edge, (room.get(edge) ?? 0) - 1);
      const left = [...room.values()];
      expect(Math.min(0, ...left)).toBe(0);
      const unplaced = choices.filter((c) => c === null).length;
      if (unplaced > 0) expect(Math.max(0, ...left)).toBe(0);
      expect(choices.slice(0, count - unplaced)).not.toContain(null);
    }),
    { numRuns: 500 },
  );
});

test('a shuffle has every member once', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(1_000), { maxLength: 50 }), fc.integer(), (members, seed) => {
      expect([...shuffled(members, randomFrom(seed))].sort()).toEqual([...members].sort());
    }),
  );
});

test('random numbers are even enough to pick nodes', () => {
  const random = randomFrom(12_345);
  const counts = new Array<number>(10).fill(0);
  for (let i = 0; i < 100_000; i += 1) {
    const drawn = random(10);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(600);
});
