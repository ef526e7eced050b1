/** Whether the job of a sandbox still takes members, as the log says it now, as `roles/job-looks.ts` asks; decided by `actors/job/member.ts`. */
import type { WireError } from '#bus/errors.ts';
import { JobId, type ProjectName } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import { PLATFORM_LABELS, type SandboxSpec } from '#bus/sandbox/spec.ts';
import { jobAddress } from '#bus/subjects.ts';
import { refusalOfMember } from '#actors/job/member.ts';
import type { Answer } from '../ports/event-log.ts';
import type { Process } from './process.ts';

/** Null where it takes them, or the sandbox belongs to no job. Answers in the same step where there is none. */
export const lookAtJob = (
  process: Process,
  project: ProjectName,
  { labels }: Pick<SandboxSpec, 'labels'>,
  done: (answer: Answer<WireError | null>) => void,
): void => {
  const label = labels[PLATFORM_LABELS.job];
  if (label === undefined) return done({ ok: true, value: null });
  const job = JobId.parse(label);
  process.log.last(jobAddress(project, job), (answer) => {
    if (!answer.ok) return done(answer);
    const stored = answer.value;
    done({ ok: true, value: refusalOfMember(job, stored && readState('job', stored.commit.state, stored.commit.schema)) });
  });
};
