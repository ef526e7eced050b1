/** Verbs of jobs and rollouts: each is one command to an actor, answered when its decision is durable, or a read. */
import type { ApiParsed } from '#bus/api/schema.ts';
import type { JOB_API, JobView, RolloutSummary } from '#bus/api/jobs.ts';
import { DsecError } from '#bus/errors.ts';
import { bodyHashOf, type JobId, jobIdFor, messageIdOf, type RolloutId, rolloutIdFor, type Shard, shardOfJob } from '#bus/ids.ts';
import type { JobCommand, JobEvent, JobSpec, JobState } from '#bus/job/schema.ts';
import { exceeds, isNothing, shareLimits } from '#bus/project/quota.ts';
import { readEvent, readState } from '#bus/records.ts';
import type { RolloutCommand, RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import { jobAddress, projectAddress, rolloutAddress } from '#bus/subjects.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import type { JobEffect } from '#actors/job/job.effects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { RolloutEffect } from '#actors/rollout/rollout.effects.ts';
import { randomUUID } from 'node:crypto';
import type { Caller, Verbs } from '../apiserver/apiserver.ts';
import { JOBS_LIMITS } from './limits.ts';
import type { SharedActors } from './shared-actors.ts';

export type JobActors = SharedActors<JobState, JobCommand, JobEvent, JobEffect>;
export type RolloutActors = SharedActors<RolloutState, RolloutCommand, RolloutEvent, RolloutEffect>;
export type JobVerbsOptions = {
  readonly jobs: JobActors;
  readonly rollouts: RolloutActors;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly shards: readonly Shard[];
};

export const createJobVerbs = (o: JobVerbsOptions): Verbs<keyof typeof JOB_API> => ({
  createJob: async ({ key, spec, holder }, caller) => {
    const id = jobIdFor(caller.project, key, o.shards.length);
    await assertShare(o, id, spec, caller);
    return toJob(o, id, { type: 'CreateJob', key, bodyHash: bodyHashOf({ spec }), spec, holder }, caller);
  },
  getJob: ({ id }, caller) => getJob(o, id, caller),
  listJobs: (request, caller) => listJobs(o, request, caller),
  claimJob: ({ id, holder, takeover, resume }, caller) => toJob(o, id, { type: 'ClaimJob', holder, takeover, resume }, caller),
  renewJob: async ({ id, holder, epoch }, caller) => {
    const { job } = await toJob(o, id, { type: 'RenewJobLease', holder, epoch }, caller);
    return { leaseUntil: job.state.owner?.leaseUntil ?? o.clock.now(), serverAt: o.clock.now() };
  },
  releaseJob: ({ id, holder, epoch }, caller) => toJob(o, id, { type: 'ReleaseJob', holder, epoch }, caller),
  pauseJob: ({ id }, caller) => toJob(o, id, { type: 'PauseJob' }, caller),
  resumeJob: ({ id }, caller) => toJob(o, id, { type: 'ResumeJob' }, caller),
  stopJob: ({ id }, caller) => toJob(o, id, { type: 'StopJob' }, caller),
  extendJob: ({ id, lifeMs }, caller) => toJob(o, id, { type: 'ExtendJob', lifeMs }, caller),
  startRollouts: (request, caller) => startRollouts(o, request, caller),
  getRollout: async ({ id }, { project }) => {
    const found = await o.rollouts.newest(rolloutAddress(project, id));
    if (!found) throw DsecError.of('ROLLOUT_NOT_FOUND', `there is no rollout ${id} in project ${project}`);
    return { version: found.stored.commit.version, streamSequence: found.stored.sequence, state: found.state };
  },
  listRollouts: (request, caller) => listRollouts(o, request, caller),
  answerTurn: async ({ id, turn, answer, epoch }, caller) => {
    const held = await o.rollouts.newest(rolloutAddress(caller.project, id));
    if (!held) throw DsecError.of('ROLLOUT_NOT_FOUND', `there is no rollout ${id} in project ${caller.project}`);
    const job = await o.jobs.newest(jobAddress(caller.project, held.state.jobId));
    return toRollout(o, id, { type: 'AnswerTurn', turn, answer, answerHash: bodyHashOf(answer ?? null), epoch, jobEpoch: job?.state.epoch ?? 0 }, caller);
  },
  stopRollout: ({ id }, caller) => toRollout(o, id, { type: 'StopRollout' }, caller),
  rolloutEvents: (request, caller) => rolloutEvents(o, request, caller),
});

/** INV-DELEGATE for jobs: nobody's share is above what the project itself has when the job is made. Later ones are bounded by both. */
const assertShare = async (o: JobVerbsOptions, id: JobId, { share }: JobSpec, { project }: Caller): Promise<void> => {
  const asked = shareLimits(share);
  if (isNothing(asked) || (await o.jobs.newest(jobAddress(project, id)))) return;
  const stored = await o.eventLog.last(projectAddress(project));
  const limits = stored ? readState('project', stored.commit.state, stored.commit.schema).limits : {};
  const key = exceeds(asked, limits);
  if (!key) return;
  const details = { project, key, asked: asked[key], limit: limits[key] };
  const message = `share.${key}: a job of project ${project} cannot have ${asked[key]}, for the project itself has ${limits[key]}`;
  throw DsecError.of('QUOTA_EXCEEDED', message, { retry: 'never', details });
};

/** Commands here are goals or carry what makes a repetition harmless, so each call may be a command of its own. */
const metaOf = (o: JobVerbsOptions, id: string, type: string, { project, principal, traceparent }: Caller): CommandMeta => {
  const commandId = messageIdOf(project, id, type, randomUUID());
  return { commandId, correlationId: id, principal, traceparent, at: o.clock.now() };
};

const decisionOf = (result: CommandResult): { decision: 'accepted' | 'ignored'; reason?: string } => {
  if (!result.ok) throw new DsecError(result.error);
  return result.decision === 'ignored' ? { decision: 'ignored', reason: result.reason } : { decision: 'accepted' };
};

const toJob = async (o: JobVerbsOptions, id: JobId, command: JobCommand, caller: Caller) => {
  assertShard(o, id);
  const result = await o.jobs.submit(jobAddress(caller.project, id), command, metaOf(o, id, command.type, caller));
  return { ...decisionOf(result), job: await getJob(o, id, caller) };
};

const toRollout = async (o: JobVerbsOptions, id: RolloutId, command: RolloutCommand, caller: Caller) => {
  const result = await o.rollouts.submit(rolloutAddress(caller.project, id), command, metaOf(o, id, command.type, caller));
  return { ...decisionOf(result), version: result.ok ? result.version : 1 };
};

const getJob = async (o: JobVerbsOptions, id: JobId, { project }: Caller): Promise<JobView> => {
  assertShard(o, id);
  const found = await o.jobs.newest(jobAddress(project, id));
  if (!found) throw DsecError.of('JOB_NOT_FOUND', `there is no job ${id} in project ${project}; see dsec job ls`);
  return { version: found.stored.commit.version, streamSequence: found.stored.sequence, state: found.state };
};

const assertShard = (o: JobVerbsOptions, id: JobId): void => {
  if (!o.shards.includes(shardOfJob(id))) throw DsecError.of('JOB_NOT_FOUND', `there is no job ${id}: the platform has no shard ${shardOfJob(id)}`);
};

const listJobs = async (o: JobVerbsOptions, { statuses, after, limit }: ApiParsed<'listJobs'>, { project }: Caller) => {
  const found = (await Promise.all(o.shards.map((shard) => o.eventLog.lastOfEach({ shard, project, kind: 'job', home: '_' })))).flat();
  const jobs = found
    .map(({ commit, sequence }) => ({ version: commit.version, streamSequence: sequence, state: commit.state as unknown as JobState }))
    .filter(({ state }) => (statuses.length === 0 || statuses.includes(state.status)) && (after === undefined || state.id > after))
    .sort((a, b) => (a.state.id < b.state.id ? -1 : 1));
  const page = jobs.slice(0, limit);
  return { jobs: page, next: page.length < jobs.length ? (page.at(-1)?.state.id ?? null) : null };
};

const startRollouts = async (o: JobVerbsOptions, { jobId, rollouts }: ApiParsed<'startRollouts'>, caller: Caller) => {
  const { state: job } = await getJob(o, jobId, caller);
  if (job.status === 'ending' || job.status === 'ended')
    throw DsecError.of('JOB_ENDED', `job ${jobId} is ${job.status} (${job.endReason}); start the rollouts in a new one`);
  const ids = await Promise.all(
    rollouts.map(async ({ key, spec }) => {
      const id = rolloutIdFor(jobId, key);
      await toRollout(o, id, { type: 'StartRollout', jobId, key, bodyHash: bodyHashOf({ spec }), spec, jobDeadlineAt: job.deadlineAt }, caller);
      return id;
    }),
  );
  return { ids };
};

const summaryOf = (
  version: number,
  { id, jobId, key, status, attempt, turns, steps, outcome, reward, spec, open }: RolloutState,
  withRequest: boolean,
): RolloutSummary => ({
  id,
  jobId,
  key,
  status,
  attempt,
  turns,
  steps,
  outcome,
  reward,
  version,
  group: spec.group,
  openTurn: status === 'asking' ? (open?.turn ?? null) : null,
  ...(withRequest && status === 'asking' && open ? { openRequest: { value: open.request } } : {}),
});

/** All rollouts of a job lie in its shard. A page ends early where its requests are long. */
const listRollouts = async (o: JobVerbsOptions, { jobId, statuses, after, limit, requests = false }: ApiParsed<'listRollouts'>, caller: Caller) => {
  await getJob(o, jobId, caller);
  const found = await o.rollouts.newestOfAll(shardOfJob(jobId), caller.project);
  const all = found
    .filter(({ state }) => state.jobId === jobId && (statuses.length === 0 || statuses.includes(state.status)) && (after === undefined || state.id > after))
    .sort((a, b) => (a.state.id < b.state.id ? -1 : 1));
  const page: RolloutSummary[] = [];
  let bytes = 0;
  for (const { stored, state } of all.slice(0, limit)) {
    const summary = summaryOf(stored.commit.version, state, requests);
    bytes += JSON.stringify(summary).length;
    if (bytes > JOBS_LIMITS.pageBytes && page.length > 0) break;
    page.push(summary);
  }
  return { rollouts: page, next: page.length < all.length ? (page.at(-1)?.id ?? null) : null };
};

const rolloutEvents = async (o: JobVerbsOptions, { id, afterVersion, limit }: ApiParsed<'rolloutEvents'>, { project }: Caller) => {
  const stored = await o.eventLog.history(rolloutAddress(project, id), afterVersion, limit + 1);
  if (stored.length === 0 && afterVersion === 0) throw DsecError.of('ROLLOUT_NOT_FOUND', `there is no rollout ${id} in project ${project}`);
  const commits: { version: number; at: JobState['createdAt']; events: RolloutEvent[] }[] = [];
  let bytes = 0;
  for (const { commit } of stored.slice(0, limit)) {
    bytes += JSON.stringify(commit.events).length;
    if (bytes > JOBS_LIMITS.pageBytes && commits.length > 0) break;
    commits.push({ version: commit.version, at: commit.at, events: commit.events.map((event) => readEvent('rollout', event, commit.schema)) });
  }
  return { commits, more: commits.length < stored.length };
};
