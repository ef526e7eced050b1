/**
 * What makes a member of a job: the job must take members, its defaults fill in what is left out, its deadline bounds the total life,
 * its share of the quota bounds how many there are.
 *
 * INV-ORPHAN: whether a job still takes members is asked before a create is accepted, before its place is recorded, and by the node
 * once the sandbox's first commit is durable; a job that ends says so before it looks for its members. So of a create and a stop that
 * pass each other one sees the other, however long the create was on its way.
 */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { JobId } from '#bus/ids.ts';
import type { JobState } from '#bus/job/schema.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import { isNothing, shareLimits } from '#bus/project/quota.ts';
import { DEFAULT_LIVES, PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import type { DurationMs, TimestampMs } from '#bus/units.ts';

/** Null: it takes them. A job that nobody remembers has ended long ago. */
export const refusalOfMember = (id: JobId, job: Pick<JobState, 'status' | 'endReason'> | null): WireError | null => {
  if (job && job.status !== 'ending' && job.status !== 'ended') return null;
  const why = job ? `${job.status} (${job.endReason})` : 'forgotten';
  return wireError('JOB_ENDED', `job ${id} is ${why}; create a new one`, { details: { job: id } });
};

/** Whatever is asked for, from now on it lives no longer than its job. */
export const totalWithin = (job: JobState, totalMs: DurationMs, now: TimestampMs): DurationMs => {
  const leftMs = job.deadlineAt - now;
  const refused = refusalOfMember(job.id, job);
  if (refused) throw new DsecError(refused);
  if (leftMs < SPEC_LIMITS.lifeMsMin) throw DsecError.of('JOB_ENDED', `job ${job.id} is at its deadline; extend it or create a new one`);
  return Math.min(totalMs, leftMs) as DurationMs;
};

export const memberOf = (job: JobState, request: SandboxRequest, now: TimestampMs): SandboxRequest => {
  const { defaults } = job.spec;
  const lives = { ...defaults.lives, ...request.lives };
  const totalMs = totalWithin(job, (lives.totalMs ?? DEFAULT_LIVES.totalMs) as DurationMs, now);
  if (job.status === 'paused' || job.status === 'pausing')
    throw DsecError.of('INVALID_STATE', `job ${job.id} is ${job.status}; resume it before sandboxes are added`, {
      details: { status: job.status },
    });
  return {
    ...request,
    limits: { ...defaults.limits, ...request.limits },
    lives: { ...lives, totalMs },
    networkRules: { ...defaults.networkRules, ...request.networkRules },
    env: { ...defaults.env, ...request.env },
    recordCommands: request.recordCommands || job.spec.recordCommands,
    labels: { ...defaults.labels, ...request.labels, [PLATFORM_LABELS.job]: job.id },
  };
};

/** The job in whose share of the quota a member counts; undefined where the job has none. */
export const shareOf = ({ id, spec }: JobState): JobId | undefined => (isNothing(shareLimits(spec.share)) ? undefined : id);
