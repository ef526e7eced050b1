/**
 * The job actor: a group of sandboxes under one owner, one deadline and one set of defaults. @paper §6.2 §6.3
 *
 * The owner is whoever holds the lease: usually a trainer, which may be preempted at any moment and comes back by the job's id
 * alone. What happens when nobody comes back is the job's own policy.
 */
import { z } from 'zod';
import { ClientKey, JobId, ProjectName } from '../ids.ts';
import { JOB_LIMITS } from '../limits.ts';
import { AskedLimits, AskedLives, Env, Labels, NetworkRules } from '../sandbox/spec.ts';
import { DurationMs, TimestampMs } from '../units.ts';

/** Who holds the lease: one process of the owner's, by a name that it chooses anew at each start. */
export const Holder = z
  .string()
  .min(1)
  .max(JOB_LIMITS.holderLength)
  .regex(/^[\x21-\x7e]+$/, 'a holder is printable ASCII without spaces');

/** What becomes of the members when the lease is over and the grace time too. Lives and the job's own deadline go on in any case. */
export const OwnerLostPolicy = z.enum(['keep', 'pause', 'stop']);
export type OwnerLostPolicy = z.infer<typeof OwnerLostPolicy>;

/** What a sandbox of the job gets where its own request says nothing. */
export const JobDefaults = z.strictObject({
  limits: AskedLimits.default({}),
  lives: AskedLives.default({}),
  networkRules: NetworkRules.default({}),
  env: Env.default({}),
  labels: Labels.default({}),
});
export type JobDefaults = z.infer<typeof JobDefaults>;

/**
 * Most that the job's living sandboxes may ask for together, as limits count it (memory with swap); null: only the project's quota
 * bounds it. It never changes, and gives nothing: what the project has no room for is refused all the same.
 */
export const JobShare = z.strictObject({
  sandboxes: z.number().int().min(1).nullable().default(null),
  memoryMiB: z.number().int().min(1).nullable().default(null),
  cpuMillis: z.number().int().min(1).nullable().default(null),
  diskMiB: z.number().int().min(1).nullable().default(null),
});
export type JobShare = z.infer<typeof JobShare>;

export const JobSpec = z.strictObject({
  /** For people; need not be unique. */
  title: z.string().max(200).default(''),
  labels: Labels.default({}),
  /** From creation; no member's total life goes beyond it. */
  lifeMs: DurationMs.min(JOB_LIMITS.lifeMsMin)
    .max(JOB_LIMITS.lifeMsMax)
    .default((24 * 3_600_000) as DurationMs),
  leaseMs: DurationMs.min(JOB_LIMITS.leaseMsMin)
    .max(JOB_LIMITS.leaseMsMax)
    .default(60_000 as DurationMs),
  /** Time after the lease in which an owner may come back before the policy acts. */
  graceMs: DurationMs.max(JOB_LIMITS.graceMsMax).default(0 as DurationMs),
  onOwnerLost: OwnerLostPolicy.default('pause'),
  share: JobShare.default({ sandboxes: null, memoryMiB: null, cpuMillis: null, diskMiB: null }),
  defaults: JobDefaults.default({ limits: {}, lives: {}, networkRules: {}, env: {}, labels: {} }),
  /** Start and end records and capped output of keyed commands also go to the stream EXEC, off the node, for fast-forward. */
  recordCommands: z.boolean().default(false),
});
export type JobSpec = z.infer<typeof JobSpec>;

const counts = { reached: z.number().int().nonnegative(), failed: z.number().int().nonnegative(), left: z.number().int().nonnegative() };
/** What became of the members: at the goal (or ended), refused for good, not there in time. */
export const MemberCounts = z.object(counts);
export type MemberCounts = z.infer<typeof MemberCounts>;

export const MemberGoal = z.enum(['paused', 'running', 'ended']);
export type MemberGoal = z.infer<typeof MemberGoal>;
export const JobEndReason = z.enum(['requested', 'owner_lost', 'deadline']);
export type JobEndReason = z.infer<typeof JobEndReason>;

const epoch = z.number().int().positive();

export const CreateJob = z.object({ type: z.literal('CreateJob'), key: ClientKey, bodyHash: z.string(), spec: JobSpec, holder: Holder.nullable() });
/**
 * Takes the lease: free, over, or held by the same holder already. `takeover` takes it from a living owner, who is fenced by the
 * higher epoch. `resume` also brings a paused job back.
 */
export const ClaimJob = z.object({ type: z.literal('ClaimJob'), holder: Holder, takeover: z.boolean().default(false), resume: z.boolean().default(false) });
export const RenewJobLease = z.object({ type: z.literal('RenewJobLease'), holder: Holder, epoch });
/** Gives the lease back at once; the policy does not act. */
export const ReleaseJob = z.object({ type: z.literal('ReleaseJob'), holder: Holder, epoch });
export const PauseJob = z.object({ type: z.literal('PauseJob') });
export const ResumeJob = z.object({ type: z.literal('ResumeJob') });
export const StopJob = z.object({ type: z.literal('StopJob') });
/** A new life, counted from the decision. */
export const ExtendJob = z.object({ type: z.literal('ExtendJob'), lifeMs: DurationMs });
/** The effect that moves the members has come to its end. */
export const ReportMembers = z.object({ type: z.literal('ReportMembers'), goal: MemberGoal, goalVersion: z.number().int().positive(), counts: MemberCounts });
export const JobDeadlineKind = z.enum(['owner', 'life', 'transition']);
export const JobDeadlinePassed = z.object({ type: z.literal('JobDeadlinePassed'), kind: JobDeadlineKind, version: z.number().int().nonnegative() });

export const JobCommand = z.discriminatedUnion('type', [
  CreateJob,
  ClaimJob,
  RenewJobLease,
  ReleaseJob,
  PauseJob,
  ResumeJob,
  StopJob,
  ExtendJob,
  ReportMembers,
  JobDeadlinePassed,
]);
export type JobCommand = z.infer<typeof JobCommand>;

const at = TimestampMs;
const goal = { at, goalVersion: z.number().int().positive(), deadlineAt: TimestampMs };
export const JobEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('JobCreated'),
    at,
    id: JobId,
    project: ProjectName,
    key: ClientKey,
    bodyHash: z.string(),
    spec: JobSpec,
    deadlineAt: TimestampMs,
    keyExpiresAt: TimestampMs,
  }),
  z.object({ type: z.literal('JobClaimed'), at, holder: Holder, epoch, leaseUntil: TimestampMs }),
  z.object({ type: z.literal('JobLeaseRenewed'), at, leaseUntil: TimestampMs }),
  z.object({ type: z.literal('JobReleased'), at }),
  /** The lease and the grace time are over; what follows in the same commit is the policy. */
  z.object({ type: z.literal('JobOwnerLost'), at, holder: Holder, epoch }),
  z.object({ type: z.literal('JobExtended'), at, deadlineAt: TimestampMs }),
  z.object({ type: z.literal('JobPausing'), ...goal }),
  z.object({ type: z.literal('JobPaused'), at, counts: MemberCounts }),
  z.object({ type: z.literal('JobResuming'), ...goal }),
  z.object({ type: z.literal('JobResumed'), at, counts: MemberCounts }),
  z.object({ type: z.literal('JobEnding'), ...goal, reason: JobEndReason }),
  /** Some members had not ended by the deadline: the stop goes on with a new one. */
  z.object({ type: z.literal('JobEndRetried'), ...goal }),
  z.object({ type: z.literal('JobEnded'), at, counts: MemberCounts }),
]);
export type JobEvent = z.infer<typeof JobEvent>;

export const JobStatus = z.enum(['active', 'pausing', 'paused', 'resuming', 'ending', 'ended']);
export type JobStatus = z.infer<typeof JobStatus>;

export const JobOwner = z.object({ holder: Holder, leaseUntil: TimestampMs });
export type JobOwner = z.infer<typeof JobOwner>;

export const JobState = z.object({
  id: JobId,
  project: ProjectName,
  key: ClientKey,
  bodyHash: z.string(),
  status: JobStatus,
  spec: JobSpec,
  createdAt: TimestampMs,
  endedAt: TimestampMs.nullable(),
  /** Absolute; no member lives beyond it. */
  deadlineAt: TimestampMs,
  livesVersion: z.number().int().nonnegative(),
  keyExpiresAt: TimestampMs,
  /** Null: nobody, because none came, it gave the job back, or it was lost. */
  owner: JobOwner.nullable(),
  /** Fencing number of the lease: rises with every claim. 0 before the first. */
  epoch: z.number().int().nonnegative(),
  /** Rises each time the members get another goal; what an effect reports under an older one is ignored. */
  goalVersion: z.number().int().nonnegative(),
  goalDeadlineAt: TimestampMs.nullable(),
  /** What became of the members at the newest goal that was reached. */
  counts: MemberCounts.nullable(),
  endReason: JobEndReason.nullable(),
});
export type JobState = z.infer<typeof JobState>;
