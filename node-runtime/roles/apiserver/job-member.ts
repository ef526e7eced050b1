/** A create that names a job is decided by what the log holds of the job. */
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import type { SandboxRequest } from '#bus/sandbox/spec.ts';
import { jobAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { memberOf } from '#actors/job/member.ts';
import type { EventLog } from '#actors/ports/event-log.ts';

export const asJobMember = async (eventLog: EventLog, project: ProjectName, request: SandboxRequest, now: TimestampMs): Promise<SandboxRequest> => {
  if (request.job === undefined) return request;
  const stored = await eventLog.last(jobAddress(project, request.job));
  if (!stored) throw DsecError.of('JOB_NOT_FOUND', `there is no job ${request.job} in project ${project}; create it first`);
  return memberOf(readState('job', stored.commit.state, stored.commit.schema), request, now);
};
