/** Verbs of jobs and rollouts: groups of sandboxes with an owner, and agents' episodes in them. @paper §6.2 §6.3 */
import { z } from 'zod';
import { ClientKey, JobId, RolloutId } from '../ids.ts';
import { API_LIMITS } from '../limits.ts';
import { Holder, JobSpec, JobState, JobStatus } from '../job/schema.ts';
import { RolloutEvent, RolloutSpec, RolloutState, RolloutStatus } from '../rollout/schema.ts';
import { DurationMs, TimestampMs } from '../units.ts';

const v = z.literal(1);
const one = z.strictObject({ v, id: JobId });
const rollout = z.strictObject({ v, id: RolloutId });

/** The state of the newest commit, and which commit that is. */
const viewOf = <S extends z.ZodType>(state: S) => z.object({ version: z.number().int().positive(), streamSequence: z.number().int().positive(), state });
export const JobView = viewOf(JobState);
export type JobView = z.infer<typeof JobView>;
export const RolloutView = viewOf(RolloutState);
export type RolloutView = z.infer<typeof RolloutView>;

/** What a list tells of a rollout: the open turn itself is fetched by id, or arrives with its commit. */
export const RolloutSummary = RolloutState.pick({
  id: true,
  jobId: true,
  key: true,
  status: true,
  attempt: true,
  turns: true,
  steps: true,
  outcome: true,
  reward: true,
}).extend({
  version: z.number().int().positive(),
  group: z.string(),
  /** The turn that waits for an answer, if one does. */
  openTurn: z.number().int().nonnegative().nullable(),
  /** What it asks, where the list was asked for that. */
  openRequest: z.object({ value: z.unknown() }).optional(),
});
export type RolloutSummary = z.infer<typeof RolloutSummary>;

/** Every command to a job is answered with what it led to. */
const jobAnswer = z.object({ decision: z.enum(['accepted', 'ignored']), reason: z.string().optional(), job: JobView });
const rolloutAnswer = z.object({ decision: z.enum(['accepted', 'ignored']), reason: z.string().optional(), version: z.number().int().positive() });

export const JOB_API = {
  /** Makes a job under a client key; with `holder`, its first owner. Same key and body: same job. */
  createJob: { request: z.strictObject({ v, key: ClientKey, spec: JobSpec, holder: Holder.nullable().default(null) }), response: jobAnswer },
  getJob: { request: one, response: JobView },
  listJobs: {
    request: z.strictObject({
      v,
      statuses: z.array(JobStatus).default([]),
      after: z.string().optional(),
      limit: z.number().int().min(1).max(API_LIMITS.jobsPerPage).default(100),
    }),
    response: z.object({ jobs: z.array(JobView), next: z.string().nullable() }),
  },
  claimJob: { request: one.extend({ holder: Holder, takeover: z.boolean().default(false), resume: z.boolean().default(false) }), response: jobAnswer },
  renewJob: {
    request: one.extend({ holder: Holder, epoch: z.number().int().positive() }),
    response: z.object({ leaseUntil: TimestampMs, serverAt: TimestampMs }),
  },
  releaseJob: { request: one.extend({ holder: Holder, epoch: z.number().int().positive() }), response: jobAnswer },
  pauseJob: { request: one, response: jobAnswer },
  resumeJob: { request: one, response: jobAnswer },
  stopJob: { request: one, response: jobAnswer },
  extendJob: { request: one.extend({ lifeMs: DurationMs }), response: jobAnswer },
  /** Starts episodes of one job, each under its own key; the same key and spec gives the same rollout. */
  startRollouts: {
    request: z.strictObject({
      v,
      jobId: JobId,
      rollouts: z
        .array(z.strictObject({ key: ClientKey, spec: RolloutSpec }))
        .min(1)
        .max(API_LIMITS.rolloutsPerCall),
    }),
    response: z.object({ ids: z.array(RolloutId) }),
  },
  getRollout: { request: rollout, response: RolloutView },
  /** A job's rollouts in id order; with `requests`, what their open turns ask. A page may end before `limit`. */
  listRollouts: {
    request: z.strictObject({
      v,
      jobId: JobId,
      statuses: z.array(RolloutStatus).default([]),
      requests: z.boolean().optional(),
      after: z.string().optional(),
      limit: z.number().int().min(1).max(API_LIMITS.rolloutsPerPage).default(500),
    }),
    response: z.object({ rollouts: z.array(RolloutSummary), next: z.string().nullable() }),
  },
  /** The answer to an open turn, under the job's lease. The same answer again changes nothing; another one is refused. */
  answerTurn: {
    request: rollout.extend({ turn: z.number().int().nonnegative(), answer: z.unknown(), epoch: z.number().int().nonnegative() }),
    response: rolloutAnswer,
  },
  stopRollout: { request: rollout, response: rolloutAnswer },
  /** The episode's events, oldest first: what a trajectory is made of. */
  rolloutEvents: {
    request: rollout.extend({ afterVersion: z.number().int().nonnegative().default(0), limit: z.number().int().min(1).max(500).default(100) }),
    response: z.object({ commits: z.array(z.object({ version: z.number().int(), at: TimestampMs, events: z.array(RolloutEvent) })), more: z.boolean() }),
  },
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;
