/** Jobs of a project from outside: made, looked at, paused, resumed and stopped as a whole, without holding their lease. @paper §6.3 */
import type { z } from 'zod';
import type { JobView, RolloutSummary, RolloutView } from '#bus/api/jobs.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, JobId, RolloutId } from '#bus/ids.ts';
import type { JobSpec, JobStatus, MemberCounts } from '#bus/job/schema.ts';
import type { RolloutStatus } from '#bus/rollout/schema.ts';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import type { DurationMs } from '#bus/units.ts';
import type { Session } from '../session.ts';
import { TRAINER_LIMITS } from './limits.ts';
import { type RolloutOrder, startRollouts } from './start-rollouts.ts';
import { type TrajectoryRecord, trajectoryOf } from './trajectory.ts';

export type JobOptions = z.input<typeof JobSpec>;
export type JobWait = {
  /** False returns as soon as the goal is recorded. */
  readonly wait?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told every few seconds how many living members are in which status, until the goal is reached. */
  readonly onProgress?: ((members: MembersByStatus) => void) | undefined;
};
export type MembersByStatus = Readonly<Partial<Record<SandboxStatus, number>>>;
/** One member of a job, and what became of it. */
export type JobMember = Pick<SandboxState, 'id' | 'status' | 'edge' | 'failure'> & { readonly rollout: string | null; readonly role: string | null };
const LIVING = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));
type Goal = { readonly verb: 'pauseJob' | 'resumeJob' | 'stopJob'; readonly reached: JobStatus };

export class Jobs {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Same key and options: same job. */
  async create(key: string, spec: JobOptions = {}): Promise<JobView> {
    return (await this.#session.api.call('createJob', { key: key as ClientKey, spec })).job;
  }

  get(id: string): Promise<JobView> {
    return this.#session.api.call('getJob', { id: jobIdOf(id) });
  }

  async *list(options: { readonly status?: readonly JobStatus[] | undefined } = {}): AsyncGenerator<JobView> {
    for (let after: string | null | undefined; after !== null; ) {
      const request = { statuses: [...(options.status ?? [])] };
      const page = await this.#session.api.call('listJobs', after === undefined ? request : { ...request, after });
      yield* page.jobs;
      after = page.next;
    }
  }

  /** Starts rollouts, each once per key; those that exist already are left as they are. JOB_ENDED in a job that has ended. */
  startRollouts(id: string, rollouts: readonly RolloutOrder[]): Promise<RolloutId[]> {
    return startRollouts(this.#session, jobIdOf(id), rollouts);
  }

  /** The job's sandboxes, ended ones too: what became of each. */
  async *members(id: string, statuses: readonly SandboxStatus[] = []): AsyncGenerator<JobMember> {
    const job = jobIdOf(id);
    await this.get(job); // one that does not exist has no members, and says so
    const request = { labels: { [PLATFORM_LABELS.job]: job }, statuses: [...statuses], limit: TRAINER_LIMITS.membersPage, atLeast: this.#session.seen };
    for (let after: string | null | undefined; after !== null; ) {
      const page = await this.#session.api.call('list', after === undefined ? request : { ...request, after });
      for (const { state } of page.sandboxes) {
        const { id: member, status, edge, failure, spec } = state;
        const { [PLATFORM_LABELS.rollout]: rollout = null, [PLATFORM_LABELS.role]: role = null } = spec.labels;
        yield { id: member, status, edge, failure, rollout, role };
      }
      after = page.next;
    }
  }

  /** Freezes every member and gives its memory back; what became of them. Repeatable. */
  pause(id: string, options: JobWait = {}): Promise<MemberCounts | null> {
    return this.#reach(id, { verb: 'pauseJob', reached: 'paused' }, options);
  }

  resume(id: string, options: JobWait = {}): Promise<MemberCounts | null> {
    return this.#reach(id, { verb: 'resumeJob', reached: 'active' }, options);
  }

  /** Ends every member and rollout. */
  stop(id: string, options: JobWait = {}): Promise<MemberCounts | null> {
    return this.#reach(id, { verb: 'stopJob', reached: 'ended' }, options);
  }

  async extend(id: string, lifeMs: number): Promise<JobView> {
    return (await this.#session.api.call('extendJob', { id: jobIdOf(id), lifeMs: lifeMs as DurationMs })).job;
  }

  async *rollouts(id: string, options: { readonly status?: readonly RolloutStatus[] | undefined } = {}): AsyncGenerator<RolloutSummary> {
    const request = { jobId: jobIdOf(id), statuses: [...(options.status ?? [])], limit: TRAINER_LIMITS.rolloutsPage };
    for (let after: string | null | undefined; after !== null; ) {
      const page = await this.#session.api.call('listRollouts', after === undefined ? request : { ...request, after });
      yield* page.rollouts;
      after = page.next;
    }
  }

  rollout(id: string): Promise<RolloutView> {
    return this.#session.api.call('getRollout', { id: rolloutIdOf(id) });
  }

  async stopRollout(id: string): Promise<void> {
    await this.#session.api.call('stopRollout', { id: rolloutIdOf(id) });
  }

  trajectory(id: string): AsyncGenerator<TrajectoryRecord> {
    return trajectoryOf(this.#session, rolloutIdOf(id));
  }

  /** Every rollout of the job with its events, ready to be written line by line. */
  async *export(id: string): AsyncGenerator<TrajectoryRecord & { readonly rolloutId: string }> {
    for await (const rollout of this.rollouts(id)) for await (const record of this.trajectory(rollout.id)) yield { rolloutId: rollout.id, ...record };
  }

  async #byStatus(id: string): Promise<MembersByStatus> {
    const counts: Partial<Record<SandboxStatus, number>> = {};
    for await (const { status } of this.members(id, LIVING)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  async #reach(id: string, { verb, reached }: Goal, { wait = true, timeoutMs, signal, onProgress }: JobWait): Promise<MemberCounts | null> {
    const { job } = await this.#session.api.call(verb, { id: jobIdOf(id) }, { signal });
    const goalVersion = job.state.goalVersion;
    const giveUpAt = this.#session.clock.now() + (timeoutMs ?? TRAINER_LIMITS.goalTimeoutMs);
    let toldAt = this.#session.clock.now();
    for (let now = job; wait; now = await this.get(id)) {
      const { status } = now.state;
      if (status === reached || now.state.goalVersion > goalVersion) return now.state.counts;
      if (this.#session.clock.now() >= giveUpAt)
        throw DsecError.of('DEADLINE_EXCEEDED', `job ${id} is still ${status}; the command is recorded and goes on, look again with dsec job show ${id}`);
      if (onProgress && this.#session.clock.now() >= toldAt + TRAINER_LIMITS.progressMs) {
        onProgress(await this.#byStatus(id));
        toldAt = this.#session.clock.now();
      }
      await this.#session.clock.sleep(TRAINER_LIMITS.goalLookMs, signal);
    }
    return null;
  }
}

const jobIdOf = (id: string): JobId => {
  const parsed = JobId.safeParse(id);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'job', parsed.error);
  return parsed.data;
};
const rolloutIdOf = (id: string): RolloutId => {
  const parsed = RolloutId.safeParse(id);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'rollout', parsed.error);
  return parsed.data;
};
