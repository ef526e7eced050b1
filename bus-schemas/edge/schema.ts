/** The Edge actor: a node's lease and generation; and the beat that Edges publish each second. @paper §3.2 §3.3 */
import { z } from 'zod';
import { EdgeName } from '../ids.ts';
import { CpuMillis, DurationMs, MiB, TimestampMs } from '../units.ts';
import { Backend } from '../sandbox/spec.ts';

/** What a node offers. Admission never goes above it. */
export const Capacity = z.object({
  sandboxes: z.number().int().nonnegative(),
  memoryMiB: MiB,
  cpuMillis: CpuMillis,
  pids: z.number().int().nonnegative(),
  /** For the writable layers of sandboxes that have a disk limit. */
  diskMiB: MiB.default(0 as MiB),
  descriptors: z.number().int().nonnegative(),
});
export type Capacity = z.infer<typeof Capacity>;

export const RegisterEdge = z.object({
  type: z.literal('RegisterEdge'),
  capacity: Capacity,
  backends: z.array(Backend),
  leaseMs: DurationMs,
  instance: z.string(),
});
/** `instance` and `generation` name the process that renews; another one's renewal is refused. */
export const RenewLease = z.object({ type: z.literal('RenewLease'), generation: z.number().int().positive(), instance: z.string(), leaseMs: DurationMs });
export const DeclareLost = z.object({ type: z.literal('DeclareLost'), generation: z.number().int().positive(), reason: z.string() });
export const RetireEdge = z.object({ type: z.literal('RetireEdge'), generation: z.number().int().positive() });
export const EdgeCommand = z.discriminatedUnion('type', [RegisterEdge, RenewLease, DeclareLost, RetireEdge]);
export type EdgeCommand = z.infer<typeof EdgeCommand>;

export const EdgeEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('EdgeRegistered'),
    at: TimestampMs,
    name: EdgeName,
    generation: z.number().int().positive(),
    instance: z.string(),
    capacity: Capacity,
    backends: z.array(Backend),
    leaseUntil: TimestampMs,
  }),
  z.object({ type: z.literal('LeaseRenewed'), at: TimestampMs, leaseUntil: TimestampMs }),
  z.object({ type: z.literal('EdgeLost'), at: TimestampMs, generation: z.number().int().positive(), reason: z.string() }),
  z.object({ type: z.literal('EdgeRetired'), at: TimestampMs }),
]);
export type EdgeEvent = z.infer<typeof EdgeEvent>;

export const EdgeStatus = z.enum(['active', 'lost', 'retired']);
export type EdgeStatus = z.infer<typeof EdgeStatus>;

export const EdgeState = z.object({
  name: EdgeName,
  status: EdgeStatus,
  /** Fencing number: rises with every registration. */
  generation: z.number().int().positive(),
  instance: z.string(),
  capacity: Capacity,
  backends: z.array(Backend),
  registeredAt: TimestampMs,
  leaseUntil: TimestampMs,
  lostReason: z.string().nullable(),
});
export type EdgeState = z.infer<typeof EdgeState>;

/** Published on `dsec.beat.<edge>` each second; the fleet view is whatever a role folds from these. */
export const Beat = z.object({
  v: z.literal(1),
  edge: EdgeName,
  generation: z.number().int().positive(),
  at: TimestampMs,
  backends: z.array(Backend),
  capacity: Capacity,
  used: Capacity,
  /** False while the Edge is draining, fenced or under critical pressure. */
  accepting: z.boolean(),
  running: z.record(z.string(), z.number().int().nonnegative()),
});
export type Beat = z.infer<typeof Beat>;
