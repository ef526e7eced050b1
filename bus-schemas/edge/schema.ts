/** The Edge actor: a node's lease and generation; and the beat that Edges publish each second. @paper §3.2 §3.3 */
import { z } from 'zod';
import { EdgeName, ProjectName } from '../ids.ts';
import { CpuMillis, DurationMs, MiB, TimestampMs } from '../units.ts';
import { Backend, Labels } from '../sandbox/spec.ts';
import { Probes } from './probes.ts';

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
  /** Newest sequence of COMMANDS before this registration: what lies before it was sent to an earlier generation. */
  queueSequence: z.number().int().nonnegative().default(0),
});
/** `instance` and `generation` name the process that renews; another one's renewal is refused. */
export const RenewLease = z.object({ type: z.literal('RenewLease'), generation: z.number().int().positive(), instance: z.string(), leaseMs: DurationMs });
/**
 * A watcher's finding: the lease that ends at `leaseUntil` was not renewed for `silentMs`, by the watcher's own monotonic clock.
 * Wall clocks of two machines are never compared.
 */
export const DeclareLost = z.object({
  type: z.literal('DeclareLost'),
  generation: z.number().int().positive(),
  leaseUntil: TimestampMs,
  silentMs: DurationMs,
  reason: z.string(),
});
/**
 * Newest sequence of COMMANDS after the registration of a node that was lost: what came while it registered may have been taken back,
 * by a placement that still read it as lost.
 */
export const FenceQueue = z.object({
  type: z.literal('FenceQueue'),
  generation: z.number().int().positive(),
  instance: z.string(),
  queueSequence: z.number().int().nonnegative(),
});
export const RetireEdge = z.object({ type: z.literal('RetireEdge'), generation: z.number().int().positive() });
/** An operator's: the node takes no new sandboxes until it is uncordoned, also over restarts. */
export const CordonEdge = z.object({ type: z.literal('CordonEdge'), reason: z.string().max(256) });
export const UncordonEdge = z.object({ type: z.literal('UncordonEdge') });
export const EdgeCommand = z.discriminatedUnion('type', [RegisterEdge, FenceQueue, RenewLease, DeclareLost, RetireEdge, CordonEdge, UncordonEdge]);
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
    leaseMs: DurationMs.default(30_000 as DurationMs),
    leaseUntil: TimestampMs,
    queueSequence: z.number().int().nonnegative().default(0),
    /** A `QueueFenced` is to follow. */
    fencing: z.boolean().default(false),
  }),
  z.object({ type: z.literal('QueueFenced'), at: TimestampMs, queueSequence: z.number().int().nonnegative() }),
  z.object({ type: z.literal('LeaseRenewed'), at: TimestampMs, leaseMs: DurationMs.default(30_000 as DurationMs), leaseUntil: TimestampMs }),
  z.object({ type: z.literal('EdgeLost'), at: TimestampMs, generation: z.number().int().positive(), reason: z.string() }),
  z.object({ type: z.literal('EdgeRetired'), at: TimestampMs }),
  z.object({ type: z.literal('EdgeCordoned'), at: TimestampMs, reason: z.string() }),
  z.object({ type: z.literal('EdgeUncordoned'), at: TimestampMs }),
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
  /** What was granted last; by the holder's clock. */
  leaseMs: DurationMs.default(30_000 as DurationMs),
  leaseUntil: TimestampMs,
  lostReason: z.string().nullable(),
  /** Newest generation that was declared lost; sandboxes of it and of all before are lost with it. 0: none was. */
  lostGeneration: z.number().int().nonnegative().default(0),
  lostAt: TimestampMs.nullable().default(null),
  /** Creates up to this sequence of COMMANDS were sent to a generation that was lost: other nodes have them now. */
  fencedSequence: z.number().int().nonnegative().default(0),
  /** It is back from a loss, and what was sent to it while it registered is not below `fencedSequence` yet. */
  fencing: z.boolean().default(false),
  /** Why no new sandboxes are taken; null while they are. */
  cordoned: z.string().nullable().default(null),
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
  /** Live sandboxes by project. */
  running: z.record(z.string(), z.number().int().nonnegative()),
  /** 1, 2, 3, … within a generation: tells an old beat from a new one, whatever happens to the node's clock. 0: not counted. */
  sequence: z.number().int().nonnegative().default(0),
  cordoned: z.string().nullable().default(null),
  /** What the node found when it looked at itself; null before the first look. */
  probes: Probes.nullable().default(null),
  /** What the node is and has, from its configuration: a spec's `require` names these. */
  labels: Labels.default({}),
  /** Layers that lie ready on the node, newest first: a preference, so the list may be cut. */
  layers: z.array(z.string()).default([]),
  /** Project that has this node to itself: one of its sandboxes here requires it. */
  reservedFor: ProjectName.nullable().default(null),
  /** Newest place in COMMANDS whose creates `used` reflects: decisions up to it need not be laid over this beat any more. */
  admittedThrough: z.number().int().nonnegative().default(0),
  /** Sandboxes of this node are records without processes: the null backend, for scale tests only. */
  simulated: z.boolean().default(false),
});
export type Beat = z.infer<typeof Beat>;

/** `dsec.lost.<edge>`: said by every watcher that sees an Edge declared lost. A hint to ask at once; the truth is the Edge's commit. */
export const EdgeLostNotice = z.object({ v: z.literal(1), edge: EdgeName, generation: z.number().int().positive(), at: TimestampMs });
export type EdgeLostNotice = z.infer<typeof EdgeLostNotice>;
