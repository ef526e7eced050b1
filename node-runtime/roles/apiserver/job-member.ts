/** A create that names a job: the job must be living, its defaults fill in what is left out, its deadline bounds the total life. */
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { JobState } from '#bus/job/schema.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import { readState } from '#bus/records.ts';
import { DEFAULT_LIVES, PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import { jobAddress } from '#bus/subjects.ts';
import type { DurationMs, TimestampMs } from '#bus/units.ts';
import type { EventLog } from '#actors/ports/event-log.ts';

export const asJobMember = async (eventLog: EventLog, project: ProjectName, request: SandboxRequest, now: TimestampMs): Promise<SandboxRequest> => {
  if (request.job === undefined) return request;
  const stored = await eventLog.last(jobAddress(project, request.job));
  if (!stored) throw DsecError.of('JOB_NOT_FOUND', `there is no job ${request.job} in project ${project}; create it first`);
  return memberOf(readState('job', stored.commit.state, stored.commit.schema), request, now);
};

/** INV-ORPHAN: whatever a member asks for, it does not outlive its job. */
export const memberOf = (job: JobState, request: SandboxRequest, now: TimestampMs): SandboxRequest => {
  const { defaults } = job.spec;
  const leftMs = job.deadlineAt - now;
  if (job.status === 'ending' || job.status === 'ended' || leftMs < SPEC_LIMITS.lifeMsMin)
    throw DsecError.of('JOB_ENDED', `job ${job.id} is ${leftMs < SPEC_LIMITS.lifeMsMin ? 'at its deadline' : job.status}; extend it or create a new one`);
  if (job.status === 'paused' || job.status === 'pausing')
    throw DsecError.of('INVALID_STATE', `job ${job.id} is ${job.status}; resume it before sandboxes are added`, {
      details: { status: job.status },
    });
  const lives = { ...defaults.lives, ...request.lives };
  return {
    ...request,
    limits: { ...defaults.limits, ...request.limits },
    lives: { ...lives, totalMs: Math.min(lives.totalMs ?? DEFAULT_LIVES.totalMs, leftMs) as DurationMs },
    networkRules: { ...defaults.networkRules, ...request.networkRules },
    env: { ...defaults.env, ...request.env },
    recordCommands: request.recordCommands || job.spec.recordCommands,
    labels: { ...defaults.labels, ...request.labels, [PLATFORM_LABELS.job]: job.id },
  };
};
