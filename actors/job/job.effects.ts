/** What a job's state calls for: bringing its members to a goal, and the deadlines of owner, life and step. */
import type { JobId, ProjectName } from '#bus/ids.ts';
import type { JobState, MemberGoal } from '#bus/job/schema.ts';
import { addMs, type TimestampMs } from '#bus/units.ts';
import type { Deadline } from '../kernel/definition.ts';
import { goalOf } from './job.decider.ts';

/** Sends every member its goal until it is there, has ended, or the deadline is over. Reports `ReportMembers`. */
export type JobEffect = {
  readonly key: string;
  readonly type: 'ensureMembers';
  readonly id: JobId;
  readonly project: ProjectName;
  readonly goal: MemberGoal;
  readonly goalVersion: number;
  readonly deadlineAt: TimestampMs;
};

export const pendingJobEffects = (state: JobState): readonly JobEffect[] => {
  const goal = goalOf(state);
  if (goal === null || state.goalDeadlineAt === null) return [];
  const { id, project, goalVersion, goalDeadlineAt: deadlineAt } = state;
  return [{ key: `members:${goal}:${goalVersion}`, type: 'ensureMembers', id, project, goal, goalVersion, deadlineAt }];
};

export const jobDeadlines = (state: JobState): readonly Deadline[] => {
  if (state.status === 'ended') return [];
  const deadlines: Deadline[] = [];
  if (state.goalDeadlineAt !== null) deadlines.push({ kind: 'transition', at: state.goalDeadlineAt, version: state.goalVersion });
  if (state.status === 'ending') return deadlines;
  deadlines.push({ kind: 'life', at: state.deadlineAt, version: state.livesVersion });
  if (state.owner) deadlines.push({ kind: 'owner', at: addMs(state.owner.leaseUntil, state.spec.graceMs), version: state.epoch });
  return deadlines;
};
