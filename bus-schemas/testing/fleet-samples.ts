/** Messages of the verb `fleet`. */
const capacity = { sandboxes: 400, memoryMiB: 65_536, cpuMillis: 16_000, pids: 40_000, diskMiB: 102_400, descriptors: 20_000 };
const used = { sandboxes: 12, memoryMiB: 6_144, cpuMillis: 12_000, pids: 1_200, diskMiB: 0, descriptors: 96 };
const machine = { memoryMiB: 24_576, cpuMillis: 2_000, diskMiB: 51_200 };

export const fleetApi = {
  'fleet.request': { v: 1, after: 'node-1', limit: 50 },
  'fleet.response': {
    at: 1_700_000_000_000,
    edges: [
      {
        edge: 'node-2',
        health: 'suspect',
        conditions: ['disk'],
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
      },
    ],
    next: null,
    totals: { edges: 1, byHealth: { healthy: 0, suspect: 1, silent: 0, lost: 0 }, accepting: 1, capacity, used, machine },
    rates: { asked: 3, started: 2.5, failed: 0.1, rejected: { NO_CAPACITY: 0.4 } },
    commandsStored: 17,
  },
};
