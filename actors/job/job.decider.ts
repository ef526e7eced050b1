/**
 * Decides who owns a job, and where its members are to be brought: paused, running again, ended.
 *
 * INV-LEASE: at most one holder has the newest epoch, and only it may renew; a lease that is over is never renewed, it is claimed
 * again under a higher epoch. INV-ORPHAN: the job has a deadline, no member lives beyond it, so none outlives both. Does not
 * decide about single members: they are sandbox actors, which this one's effect sends goals to.
 * @paper §6.2 §6.3
 */
import { wireError } from '#bus/errors.ts';
import { JobId } from '#bus/ids.ts';
import type { JobCommand, JobEndReason, JobEvent, JobState, MemberGoal } from '#bus/job/schema.ts';
import { JOB_LIMITS, KEY_LIMITS } from '#bus/limits.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { JOB_ACTOR_LIMITS } from './limits.ts';

type JobDecision = Decision<JobEvent>;
type Of<T extends JobCommand['type']> = Extract<JobCommand, { type: T }>;

export const decideJob = (state: JobState | null, command: JobCommand, context: DecisionContext): JobDecision => {
  if (command.type === 'CreateJob') return state ? createAgain(state, command, context.at) : create(command, context);
  if (!state) return reject(wireError('JOB_NOT_FOUND', `there is no job ${context.address.id} in project ${context.address.project}`));
  if (command.type === 'ReportMembers') return reportMembers(state, command, context.at);
  if (command.type === 'JobDeadlinePassed') return deadlinePassed(state, command, context.at);
  if (command.type === 'StopJob') return isEnding(state) ? ignore(`already ${state.status}`) : accept(ending(state, 'requested', context.at));
  if (command.type === 'ReleaseJob') return release(state, command, context.at);
  if (isEnding(state)) return reject(wireError('JOB_ENDED', `job ${state.id} is ${state.status} (${state.endReason}); create a new one`));
  return decideLiving(state, command, context.at);
};

const decideLiving = (
  state: JobState,
  command: Of<'ClaimJob'> | Of<'RenewJobLease'> | Of<'PauseJob'> | Of<'ResumeJob'> | Of<'ExtendJob'>,
  at: TimestampMs,
): JobDecision => {
  switch (command.type) {
    case 'ClaimJob':
      return claim(state, command, at);
    case 'RenewJobLease':
      return renew(state, command, at);
    case 'PauseJob':
      return isBound(state, 'paused') ? ignore(`already ${state.status}`) : accept(towards(state, 'JobPausing', at));
    case 'ResumeJob':
      return isBound(state, 'running') ? ignore(`already ${state.status}`) : accept(towards(state, 'JobResuming', at));
    case 'ExtendJob':
      return extend(state, command, at);
  }
};

const create = ({ key, bodyHash, spec, holder }: Of<'CreateJob'>, { address, at }: DecisionContext): JobDecision => {
  const id = JobId.safeParse(address.id);
  if (!id.success) return reject(wireError('INVALID_ARGUMENT', `${address.id} is not a job id`));
  const keyExpiresAt = addMs(at, Math.max(KEY_LIMITS.requestKeyLifetimeMs, spec.lifeMs) as DurationMs);
  const deadlineAt = addMs(at, spec.lifeMs);
  const created: JobEvent = { type: 'JobCreated', at, id: id.data, project: address.project, key, bodyHash, spec, deadlineAt, keyExpiresAt };
  return holder === null
    ? accept<JobEvent>(created)
    : accept<JobEvent>(created, { type: 'JobClaimed', at, holder, epoch: 1, leaseUntil: addMs(at, spec.leaseMs) });
};

const createAgain = (state: JobState, { key, bodyHash }: Of<'CreateJob'>, at: TimestampMs): JobDecision => {
  const details = { jobId: state.id };
  if (at >= state.keyExpiresAt)
    return reject(wireError('KEY_EXPIRED', `key ${state.key} named a job before and its lifetime is over; use a new key`, { details }));
  if (key !== state.key || bodyHash !== state.bodyHash)
    return reject(wireError('KEY_CONFLICT', `key ${key} already names a job with another body; use a new key for a new job`, { details }));
  return ignore('the same job has been created already');
};

const claim = (state: JobState, { holder, takeover, resume }: Of<'ClaimJob'>, at: TimestampMs): JobDecision => {
  const { owner } = state;
  const isLiving = owner !== null && at < owner.leaseUntil;
  if (isLiving && owner.holder !== holder && !takeover)
    return reject(
      wireError('JOB_OWNED', `job ${state.id} is held by ${owner.holder}; wait until its lease is over, or take it over`, {
        details: { holder: owner.holder, leaseUntil: owner.leaseUntil, retryAfterMs: owner.leaseUntil - at },
      }),
    );
  const leaseUntil = addMs(at, state.spec.leaseMs);
  const claimed: JobEvent = { type: 'JobClaimed', at, holder, epoch: state.epoch + 1, leaseUntil };
  if (isLiving && owner.holder === holder && !resume && owner.leaseUntil >= leaseUntil) return ignore('this holder has the lease already');
  return resume && !isBound(state, 'running') ? accept(claimed, towards(state, 'JobResuming', at)) : accept(claimed);
};

const renew = (state: JobState, { holder, epoch }: Of<'RenewJobLease'>, at: TimestampMs): JobDecision => {
  const { owner } = state;
  if (!owner || owner.holder !== holder || state.epoch !== epoch)
    return lost(state, holder, epoch, owner ? `it is held by ${owner.holder}` : 'nobody holds it');
  if (at >= owner.leaseUntil) return lost(state, holder, epoch, 'the lease was over before it was renewed');
  const leaseUntil = addMs(at, state.spec.leaseMs);
  return leaseUntil > owner.leaseUntil ? accept({ type: 'JobLeaseRenewed', at, leaseUntil }) : ignore('the lease already lasts as long');
};

const release = (state: JobState, { holder, epoch }: Of<'ReleaseJob'>, at: TimestampMs): JobDecision => {
  if (state.owner === null || state.owner.holder !== holder || state.epoch !== epoch) return ignore('this holder has no lease to give back');
  return accept({ type: 'JobReleased', at });
};

const lost = (state: JobState, holder: string, epoch: number, why: string): JobDecision =>
  reject(
    wireError('LEASE_LOST', `${holder} no longer holds job ${state.id} under epoch ${epoch}: ${why}; claim it again before going on`, {
      details: { epoch: state.epoch, holder: state.owner?.holder ?? null },
    }),
  );

const extend = (state: JobState, { lifeMs }: Of<'ExtendJob'>, at: TimestampMs): JobDecision => {
  const { lifeMsMin, lifeMsMax } = JOB_LIMITS;
  if (lifeMs < lifeMsMin || lifeMs > lifeMsMax)
    return reject(
      wireError('LIMIT_OUT_OF_RANGE', `a job's life of ${lifeMs} ms is not between ${lifeMsMin} and ${lifeMsMax} ms`, {
        details: { lifeMs, lifeMsMin, lifeMsMax },
      }),
    );
  const deadlineAt = addMs(at, lifeMs);
  return deadlineAt === state.deadlineAt ? ignore('the job already lasts as long') : accept({ type: 'JobExtended', at, deadlineAt });
};

const reportMembers = (state: JobState, { goal, goalVersion, counts }: Of<'ReportMembers'>, at: TimestampMs): JobDecision => {
  if (goalVersion !== state.goalVersion || goal !== goalOf(state)) return ignore('the members have another goal now');
  if (goal === 'paused') return accept({ type: 'JobPaused', at, counts });
  if (goal === 'running') return accept({ type: 'JobResumed', at, counts });
  const { goalVersion: next, deadlineAt } = newGoal(state, at);
  return counts.left > 0 ? accept({ type: 'JobEndRetried', at, goalVersion: next, deadlineAt }) : accept({ type: 'JobEnded', at, counts });
};

const deadlinePassed = (state: JobState, { kind, version }: Of<'JobDeadlinePassed'>, at: TimestampMs): JobDecision => {
  if (isEnding(state) && kind !== 'transition') return ignore(`the job is ${state.status}`);
  switch (kind) {
    case 'life':
      if (version !== state.livesVersion || at < state.deadlineAt) return ignore('the job lives longer now');
      return accept(ending(state, 'deadline', at));
    case 'owner':
      return ownerDeadline(state, version, at);
    case 'transition':
      if (version !== state.goalVersion || state.goalDeadlineAt === null || at < state.goalDeadlineAt) return ignore('the members have another goal now');
      return goalMissed(state, at);
  }
};

const ownerDeadline = (state: JobState, version: number, at: TimestampMs): JobDecision => {
  const { owner, spec } = state;
  if (owner === null || version !== state.epoch) return ignore('the job has another owner now');
  if (at < owner.leaseUntil + spec.graceMs) return ignore('the owner has renewed its lease');
  const gone: JobEvent = { type: 'JobOwnerLost', at, holder: owner.holder, epoch: state.epoch };
  if (spec.onOwnerLost === 'stop') return accept(gone, ending(state, 'owner_lost', at));
  return spec.onOwnerLost === 'pause' && !isBound(state, 'paused') ? accept(gone, towards(state, 'JobPausing', at)) : accept(gone);
};

/** A step that nobody has finished is over as far as the job is concerned; a stop is never given up. */
const goalMissed = (state: JobState, at: TimestampMs): JobDecision => {
  const unknown = { reached: 0, failed: 0, left: 0 };
  if (state.status === 'pausing') return accept({ type: 'JobPaused', at, counts: unknown });
  if (state.status === 'resuming') return accept({ type: 'JobResumed', at, counts: unknown });
  return accept({ type: 'JobEndRetried', at, ...newGoal(state, at) });
};

const isEnding = ({ status }: JobState): boolean => status === 'ending' || status === 'ended';
const isBound = ({ status }: JobState, goal: 'paused' | 'running'): boolean =>
  goal === 'paused' ? status === 'paused' || status === 'pausing' : status === 'active' || status === 'resuming';

/** Where the members are being brought, if anywhere. */
export const goalOf = ({ status }: Pick<JobState, 'status'>): MemberGoal | null =>
  status === 'pausing' ? 'paused' : status === 'resuming' ? 'running' : status === 'ending' ? 'ended' : null;

const newGoal = (state: JobState, at: TimestampMs) => ({ goalVersion: state.goalVersion + 1, deadlineAt: addMs(at, JOB_ACTOR_LIMITS.goalMs) });
const towards = (state: JobState, type: 'JobPausing' | 'JobResuming', at: TimestampMs): JobEvent => ({ type, at, ...newGoal(state, at) });
const ending = (state: JobState, reason: JobEndReason, at: TimestampMs): JobEvent => ({ type: 'JobEnding', at, reason, ...newGoal(state, at) });
