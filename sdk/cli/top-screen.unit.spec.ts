import { expect, test } from 'vitest';
import type { FleetEdge } from '#bus/api/fleet.ts';
import type { Fleet } from '../admin.ts';
import { topScreen } from './top-screen.ts';

const capacity = { sandboxes: 400, memoryMiB: 65_536, cpuMillis: 16_000, pids: 40_000, diskMiB: 102_400, descriptors: 20_000 };
const used = { ...capacity, sandboxes: 12, memoryMiB: 6_144, cpuMillis: 12_000 };
const machine = { memoryMiB: 24_576, cpuMillis: 2_000, diskMiB: 102_400 };
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
    machine,
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
    totals: { edges: edges.length, byHealth: { healthy: edges.length, suspect: 0, silent: 0, lost: 0 }, accepting: edges.length, capacity, used, machine },
    rates: { asked: 3, started: 2.5, failed: 0, rejected: { NO_CAPACITY: 0.4 } },
    commandsStored: null,
  }) as unknown as Fleet;

test('who needs an eye comes first, and says why', () => {
  const lines = topScreen(
    fleetOf(node('a'), node('b', { health: 'suspect', conditions: ['disk'] }), node('c', { health: 'lost', used: null, beatAgeMs: null })),
    undefined,
  );
  expect(lines.slice(6).map((line) => line.split(' ')[0])).toEqual(['c', 'b', 'a']);
  expect(lines[6]).toMatch(/lost .* \?\/400 .* never/);
  expect(lines[7]).toContain('suspect (disk)');
  expect(lines[3]).toBe('per second: 3.0 asked, 2.5 started, 0.0 failed · rejected: NO_CAPACITY 0.4 · commands in the queue: unknown');
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

test('what is offered beyond what the machines have is said, and what of it is reserved', () => {
  const lines = topScreen(fleetOf(node('a')), undefined);
  expect(lines[1]).toBe('reserved/offered/real: sandboxes 12/400 · cpu 12.0/16.0/2.0 · memory 6.0/64.0/24.0 GiB · disk 100.0/100.0/100.0 GiB');
  expect(lines[2]).toBe('over-committed · cpu offered ×8.0, reserved 600 % · memory offered ×2.7, reserved 25 %');
  const simulated = fleetOf(node('a', { machine: null }));
  const without = topScreen({ ...simulated, totals: { ...simulated.totals, machine: null } }, undefined);
  expect(without.join('\n')).not.toContain('over-committed');
  expect(without[1]).toContain('reserved/offered: sandboxes 12/400 · cpu 12.0/16.0 ·');
});

test('a narrow terminal has whole columns and whole figures', () => {
  for (const columns of [80, 140]) {
    const lines = topScreen(fleetOf(node('node-with-a-long-name-1'), node('b')), { columns, rows: 24 });
    const text = lines.join('\n');
    for (const figure of [
      '12/400',
      '2 healthy; 2 of 2 take sandboxes',
      'memory 6.0/64.0/24.0 GiB',
      'disk 100.0/100.0/100.0 GiB',
      'commands in the queue: unknown',
    ])
      expect(text).toContain(figure);
    const head = lines.find((line) => line.startsWith('EDGE')) ?? '';
    expect(head.endsWith('RUNNING')).toBe(true);
    expect(head.includes('DISK GiB')).toBe(columns === 140);
  }
});
