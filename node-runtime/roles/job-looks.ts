/**
 * Whether the job of a sandbox still takes members, as the log says it now. A look begins after everybody who is answered by it has
 * asked; those who ask in the same turn share one. Decides nothing: `actors/job/member.ts`.
 */
import type { WireError } from '#bus/errors.ts';
import { JobId, type ProjectName } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import { PLATFORM_LABELS, type SandboxSpec } from '#bus/sandbox/spec.ts';
import { jobAddress } from '#bus/subjects.ts';
import { refusalOfMember } from '#actors/job/member.ts';
import type { EventLog } from '#actors/ports/event-log.ts';

export class JobLooks {
  readonly #eventLog: Pick<EventLog, 'last'>;
  /** Looks that have not begun. */
  readonly #next = new Map<JobId, Promise<WireError | null>>();

  constructor(eventLog: Pick<EventLog, 'last'>) {
    this.#eventLog = eventLog;
  }

  /** Null: it takes them, or the sandbox belongs to none. */
  async refusal(project: ProjectName, { labels }: Pick<SandboxSpec, 'labels'>): Promise<WireError | null> {
    const job = JobId.safeParse(labels[PLATFORM_LABELS.job]);
    if (!job.success) return null;
    const next = this.#next.get(job.data) ?? Promise.resolve().then(() => this.#look(project, job.data));
    this.#next.set(job.data, next);
    return next;
  }

  async #look(project: ProjectName, job: JobId): Promise<WireError | null> {
    this.#next.delete(job);
    const stored = await this.#eventLog.last(jobAddress(project, job));
    return refusalOfMember(job, stored && readState('job', stored.commit.state, stored.commit.schema));
  }
}
