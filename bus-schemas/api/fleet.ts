/** The verb `fleet`: what an apiserver has heard of all nodes. For operators of the platform, in its first project. @paper §3.2 */
import { z } from 'zod';
import { Machine } from '../edge/probes.ts';
import { Capacity } from '../edge/schema.ts';
import { EdgeName, ProjectName } from '../ids.ts';
import { Backend } from '../sandbox/spec.ts';
import { TimestampMs } from '../units.ts';

const v = z.literal(1);
const perSecond = z.number().nonnegative();
const count = z.number().int().nonnegative();

export const FLEET_LIMITS = {
  /** Nodes of one page: each takes about 1 KiB, and a unit has 160 (@paper §2.4). */
  page: 200,
  /** Projects of one node that are told apart, the largest first. */
  projects: 20,
  /** Over how long rates are taken: long enough to be steady, short enough to see a change. */
  rateWindowMs: 10_000,
} as const;

/** `silent`: registered, and not heard at the moment. */
export const FleetHealth = z.enum(['healthy', 'suspect', 'silent', 'lost']);
export type FleetHealth = z.infer<typeof FleetHealth>;

export const FleetEdge = z.object({
  edge: EdgeName,
  health: FleetHealth,
  /** What speaks against it. */
  conditions: z.array(z.string()),
  generation: count,
  accepting: z.boolean(),
  cordoned: z.string().nullable(),
  backends: z.array(Backend),
  simulated: z.boolean(),
  capacity: Capacity,
  /** What its host really has: `capacity` may be a multiple of it. Null where nobody says, and for nodes that only keep records. */
  machine: Machine.nullable().default(null),
  /** What admitted sandboxes have reserved; null when the node is not heard. */
  used: Capacity.nullable(),
  /** Live sandboxes by project, the largest first; `others` are those of further projects. */
  running: z.array(z.object({ project: ProjectName, sandboxes: count })),
  others: count,
  reservedFor: ProjectName.nullable(),
  /** Since its newest beat; null when none was heard. */
  beatAgeMs: count.nullable(),
});
export type FleetEdge = z.infer<typeof FleetEdge>;

export const FleetTotals = z.object({
  edges: count,
  byHealth: z.record(FleetHealth, count),
  accepting: count,
  capacity: Capacity,
  used: Capacity,
  /** Of the nodes that are heard and say it; null when none does. */
  machine: Machine.nullable().default(null),
});
export type FleetTotals = z.infer<typeof FleetTotals>;

/** Of the last ten seconds, from the log. */
export const FleetRates = z.object({
  asked: perSecond,
  started: perSecond,
  failed: perSecond,
  /** Sandboxes that got no node, by code. */
  rejected: z.record(z.string(), perSecond),
});
export type FleetRates = z.infer<typeof FleetRates>;

export const FLEET_API = {
  fleet: {
    request: z.strictObject({ v, after: EdgeName.optional(), limit: z.number().int().min(1).max(FLEET_LIMITS.page).default(FLEET_LIMITS.page) }),
    response: z.object({
      at: TimestampMs,
      /** By name. */
      edges: z.array(FleetEdge),
      next: EdgeName.nullable(),
      totals: FleetTotals,
      rates: FleetRates,
      /** Commands that wait or are worked on; null when the bus does not say. */
      commandsStored: count.nullable(),
    }),
  },
} as const;
