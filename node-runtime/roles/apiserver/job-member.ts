/** A create that names a job is decided by what the log holds of the job. */
import { DsecError } from '#bus/errors.ts';
import type { JobId, ProjectName } from '#bus/ids.ts';
import type { JobState } from '#bus/job/schema.ts';
import { readState } from '#bus/records.ts';
import { PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import { jobAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { memberOf, shareOf } from '#actors/job/member.ts';
import type { EventLog } from '#actors/ports/event-log.ts';

/** What is asked for, filled in by its job, and the job in whose share of the quota it counts. */
export type Membership = { readonly request: SandboxRequest; readonly share: JobId | undefined };

export const asJobMember = async (eventLog: EventLog, project: ProjectName, request: SandboxRequest, now: TimestampMs): Promise<Membership> => {
  if (request.job === undefined) {
    // By its label it would be moved and ended with the job, and be bound by nothing of it.
    if (PLATFORM_LABELS.job in request.labels)
      throw DsecError.of('INVALID_ARGUMENT', `label ${PLATFORM_LABELS.job} is the platform's own; name the job itself (job)`, {
        details: { fields: ['labels'] },
      });
    return { request, share: undefined };
  }
  const job = await jobOf(eventLog, project, request.job);
  return { request: memberOf(job, request, now), share: shareOf(job) };
};

/** As the log has it now. JOB_NOT_FOUND where there is none. */
export const jobOf = async (eventLog: EventLog, project: ProjectName, id: JobId): Promise<JobState> => {
  const stored = await eventLog.last(jobAddress(project, id));
  if (!stored) throw DsecError.of('JOB_NOT_FOUND', `there is no job ${id} in project ${project}; create it first`);
  return readState('job', stored.commit.state, stored.commit.schema);
};
