import { expect, test } from 'vitest';
import type { FleetEdge } from '#bus/api/fleet.ts';
import type { Fleet } from '../admin.ts';
import { topScreen } from './top-screen.ts';

const capacity = { sandboxes: 400, memoryMiB: 65_536, cpuMillis: 16_000, pids: 40_000, diskMiB: 102_400, descriptors: 20_000 };
const used = { ...capacity, sandboxes: 12, memoryMiB: 6_144, cpuMillis: 12_000 };
const node = (edge: string, more: object = {}) =>
  ({
    edge,
    health: 'healthy',
    conditions: [],
    generation: 3,
    accepting: true,
    cordoned: null,
    backends: ['container'],
    simulated: false,
    capacity,
    used,
    running: [{ project: 'acme', sandboxes: 12 }],
    others: 0,
    reservedFor: null,
    beatAgeMs: 400,
    ...more,
  }) as unknown as FleetEdge;
const fleetOf = (...edges: FleetEdge[]) =>
  ({
    at: 1_700_000_000_000,
    edges,
    totals: { edges: edges.length, byHealth: { healthy: edges.length, suspect: 0, silent: 0, lost: 0 }, accepting: edges.length, capacity, used },
    rates: { asked: 3, started: 2.5, failed: 0, rejected: { NO_CAPACITY: 0.4 } },
    commandsStored: null,
  }) as unknown as Fleet;

test('who needs an eye comes first, and says why', () => {
  const lines = topScreen(
    fleetOf(node('a'), node('b', { health: 'suspect', conditions: ['disk'] }), node('c', { health: 'lost', used: null, beatAgeMs: null })),
    undefined,
  );
  expect(lines.slice(5).map((line) => line.split(' ')[0])).toEqual(['c', 'b', 'a']);
  expect(lines[5]).toMatch(/lost .* \?\/400 .* never/);
  expect(lines[6]).toContain('suspect (disk)');
  expect(lines[2]).toBe('per second: 3.0 asked, 2.5 started, 0.0 failed · rejected: NO_CAPACITY 0.4 · commands in the queue: unknown');
});

test('it fits the terminal and counts what does not', () => {
  const nodes = Array.from({ length: 30 }, (_, n) => node(`node-${String(n).padStart(2, '0')}`));
  for (const size of [
    { columns: 40, rows: 12 },
    { columns: 80, rows: 24 },
  ]) {
    const lines = topScreen(fleetOf(...nodes), size);
    expect(lines.length).toBeLessThanOrEqual(size.rows);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(size.columns);
    const shown = lines.filter((line) => line.startsWith('node-')).length;
    expect(lines.at(-1)).toContain(`${30 - shown} more`);
  }
});

test('what an operator wrote cannot drive the terminal', () => {
  expect(topScreen(fleetOf(node('a', { cordoned: '\u001b[2Jgone' })), undefined).join('\n')).not.toContain('\u001b');
});
