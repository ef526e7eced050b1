import { expect, test } from 'vitest';
import type { Capacity } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import { project, spec } from '../sandbox/testing/samples.ts';
import { chooseNear } from './choose-near.ts';
import type { FleetNode } from './fleet.ts';

const [A, B] = ['edge-a', 'edge-b'] as [EdgeName, EdgeName];
const capacityOf = (sandboxes: number) => ({ sandboxes, memoryMiB: 1e6, cpuMillis: 1e6, pids: 1e6, diskMiB: 1e6, descriptors: 1e6 }) as unknown as Capacity;
const NONE = { sandboxes: 0, memoryMiB: 0, cpuMillis: 0, pids: 0, diskMiB: 0, descriptors: 0 } as unknown as Capacity;
const node = (edge: EdgeName, sandboxes: number): FleetNode =>
  ({
    edge,
    backends: ['container'] as const,
    capacity: capacityOf(sandboxes),
    used: NONE,
    labels: {},
    layers: new Set(),
    running: {},
    reservedFor: null,
    failures: 0,
  }) as unknown as FleetNode;
const choices = (count: number, fleet: FleetNode[], exclude: EdgeName[] = []) => chooseNear({ project, spec, count, fleet, seed: 7, exclude }, A);

test('the node of the origin while it has room, then others, then nobody', () => {
  expect(choices(3, [node(A, 10), node(B, 10)])).toEqual([A, A, A]);
  expect(choices(4, [node(A, 2), node(B, 10)])).toEqual([A, A, B, B]);
  expect(choices(4, [node(A, 2), node(B, 1)])).toEqual([A, A, B, null]);
});

test('a node that has refused, or is away, is not asked', () => {
  expect(choices(2, [node(A, 10), node(B, 10)], [A])).toEqual([B, B]);
  expect(choices(1, [node(B, 10)])).toEqual([B]);
});
