/** Messages of Edges, as they lie on the wire. */
import { at, byType, capacity, digest, events, later } from './common-samples.ts';

export const edgeState = {
  name: 'edge-1',
  status: 'active',
  generation: 3,
  instance: 'i-1',
  capacity,
  backends: ['container'],
  registeredAt: at,
  leaseMs: 30_000,
  leaseUntil: later,
  lostReason: null,
  lostGeneration: 2,
  lostAt: at,
  fencedSequence: 12,
  fencing: true,
  cordoned: 'maintenance',
};

export const beats = {
  busy: {
    v: 1,
    edge: 'edge-1',
    generation: 3,
    at,
    backends: ['container'],
    capacity,
    used: { ...capacity, sandboxes: 7 },
    accepting: true,
    running: { acme: 7 },
    labels: { gpu: 'a100' },
    layers: [digest],
    reservedFor: 'acme',
    admittedThrough: 4_711,
  },
};

export const edgeCommands = byType(
  { type: 'RegisterEdge', capacity, backends: ['container'], leaseMs: 30_000, instance: 'i-1', queueSequence: 12 },
  { type: 'FenceQueue', generation: 3, instance: 'i-1', queueSequence: 13 },
  { type: 'RenewLease', generation: 3, instance: 'i-1', leaseMs: 30_000 },
  { type: 'DeclareLost', generation: 3, leaseUntil: later, silentMs: 36_000, reason: 'silent' },
  { type: 'RetireEdge', generation: 3 },
  { type: 'CordonEdge', reason: 'maintenance' },
  { type: 'UncordonEdge' },
);

export const edgeEvents = events(
  'edge',
  {
    type: 'EdgeRegistered',
    at,
    name: 'edge-1',
    generation: 3,
    instance: 'i-1',
    capacity,
    backends: ['container'],
    leaseMs: 30_000,
    leaseUntil: later,
    queueSequence: 12,
    fencing: true,
  },
  { type: 'QueueFenced', at, queueSequence: 13 },
  { type: 'LeaseRenewed', at, leaseMs: 30_000, leaseUntil: later },
  { type: 'EdgeLost', at, generation: 3, reason: 'silent' },
  { type: 'EdgeRetired', at },
  { type: 'EdgeCordoned', at, reason: 'maintenance' },
  { type: 'EdgeUncordoned', at },
);
