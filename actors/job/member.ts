/** A sandbox that is asked for as a member of a job: the job must take members, its defaults fill in what is left out, its deadline bounds the total life. */
import { DsecError } from '#bus/errors.ts';
import type { JobState } from '#bus/job/schema.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import { DEFAULT_LIVES, PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import type { DurationMs, TimestampMs } from '#bus/units.ts';

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
