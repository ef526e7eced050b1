/** Folds one event into a job's state. INV-REPLAY: a function of its arguments alone. */
import type { JobEvent, JobState, JobStatus } from '#bus/job/schema.ts';

type Created = Extract<JobEvent, { type: 'JobCreated' }>;

export const evolveJob = (state: JobState | null, event: JobEvent): JobState => {
  if (event.type === 'JobCreated') return created(event);
  if (!state) throw new Error(`job: ${event.type} before JobCreated`);
  switch (event.type) {
    case 'JobClaimed':
      return { ...state, owner: { holder: event.holder, leaseUntil: event.leaseUntil }, epoch: event.epoch };
    case 'JobLeaseRenewed':
      return { ...state, owner: state.owner && { ...state.owner, leaseUntil: event.leaseUntil } };
    case 'JobReleased':
    case 'JobOwnerLost':
      return { ...state, owner: null };
    case 'JobExtended':
      return { ...state, deadlineAt: event.deadlineAt, livesVersion: state.livesVersion + 1 };
    case 'JobPausing':
      return { ...state, ...towards('pausing', event) };
    case 'JobResuming':
      return { ...state, ...towards('resuming', event) };
    case 'JobEnding':
      return { ...state, ...towards('ending', event), endReason: event.reason };
    case 'JobEndRetried':
      return { ...state, ...towards('ending', event) };
    case 'JobPaused':
      return { ...state, status: 'paused', counts: event.counts, goalDeadlineAt: null };
    case 'JobResumed':
      return { ...state, status: 'active', counts: event.counts, goalDeadlineAt: null };
    case 'JobEnded':
      return { ...state, status: 'ended', counts: event.counts, goalDeadlineAt: null, endedAt: event.at, owner: null };
  }
};

const towards = (status: JobStatus, { goalVersion, deadlineAt }: Extract<JobEvent, { goalVersion: number }>) => ({
  status,
  goalVersion,
  goalDeadlineAt: deadlineAt,
});

const created = ({ id, project, key, bodyHash, spec, at, deadlineAt, keyExpiresAt }: Created): JobState => ({
  id,
  project,
  key,
  bodyHash,
  status: 'active',
  spec,
  createdAt: at,
  endedAt: null,
  deadlineAt,
  livesVersion: 0,
  keyExpiresAt,
  owner: null,
  epoch: 0,
  goalVersion: 0,
  goalDeadlineAt: null,
  counts: null,
  endReason: null,
});
