/** Messages of jobs, as they lie on the wire. */
import { at, byType, events, later } from './common-samples.ts';

export const jobId = `jb-3-${'cd'.repeat(16)}`;
const memberCounts = { reached: 30, failed: 1, left: 1 };
const jobSpec = {
  title: 'nightly',
  labels: { team: 'rl' },
  lifeMs: 86_400_000,
  leaseMs: 60_000,
  graceMs: 30_000,
  onOwnerLost: 'stop',
  share: { sandboxes: 64, memoryMiB: 65_536, cpuMillis: null, diskMiB: null },
  defaults: {
    limits: { memoryMiB: 1_024 },
    lives: { idleMs: 60_000 },
    networkRules: { 'pypi.org': true },
    env: { LANG: 'C.UTF-8' },
    labels: { job: 'nightly' },
  },
  recordCommands: true,
};
export const jobState = {
  id: jobId,
  project: 'acme',
  key: 'train-7',
  bodyHash: 'b0d1',
  status: 'paused',
  spec: jobSpec,
  createdAt: at,
  endedAt: null,
  deadlineAt: later,
  livesVersion: 1,
  keyExpiresAt: at + 86_400_000,
  owner: { holder: 'trainer-1', leaseUntil: later },
  epoch: 2,
  goalVersion: 1,
  goalDeadlineAt: null,
  counts: memberCounts,
  endReason: null,
};
const jobView = { version: 3, streamSequence: 11, state: jobState };
const goal = { at, goalVersion: 1, deadlineAt: later };

export const jobCommands = byType(
  { type: 'CreateJob', key: 'train-7', bodyHash: 'b0d1', spec: jobSpec, holder: 'trainer-1' },
  { type: 'ClaimJob', holder: 'trainer-2', takeover: true, resume: true },
  { type: 'RenewJobLease', holder: 'trainer-2', epoch: 2 },
  { type: 'ReleaseJob', holder: 'trainer-2', epoch: 2 },
  { type: 'PauseJob' },
  { type: 'ResumeJob' },
  { type: 'StopJob' },
  { type: 'ExtendJob', lifeMs: 3_600_000 },
  { type: 'ReportMembers', goal: 'paused', goalVersion: 1, counts: memberCounts },
  { type: 'JobDeadlinePassed', kind: 'owner', version: 2 },
);

export const jobEvents = events(
  'job',
  {
    type: 'JobCreated',
    at,
    id: jobId,
    project: 'acme',
    key: 'train-7',
    bodyHash: 'b0d1',
    spec: jobSpec,
    deadlineAt: later,
    keyExpiresAt: later,
    quotaLease: null,
  },
  { type: 'JobClaimed', at, holder: 'trainer-1', epoch: 1, leaseUntil: later },
  { type: 'JobLeaseRenewed', at, leaseUntil: later },
  { type: 'JobReleased', at },
  { type: 'JobOwnerLost', at, holder: 'trainer-1', epoch: 1 },
  { type: 'JobExtended', at, deadlineAt: later },
  { type: 'JobPausing', ...goal },
  { type: 'JobPaused', at, counts: memberCounts },
  { type: 'JobResuming', ...goal },
  { type: 'JobResumed', at, counts: memberCounts },
  { type: 'JobEnding', ...goal, reason: 'owner_lost' },
  { type: 'JobEndRetried', ...goal },
  { type: 'JobEnded', at, counts: memberCounts },
);

export const jobApi = {
  'createJob.request': { v: 1, key: 'train-7', spec: jobSpec, holder: 'trainer-1' },
  'createJob.response': { decision: 'accepted', job: jobView },
  'getJob.request': { v: 1, id: jobId },
  'getJob.response': jobView,
  'listJobs.request': { v: 1, statuses: ['paused'] },
  'listJobs.response': { jobs: [jobView], next: jobId },
  'claimJob.request': { v: 1, id: jobId, holder: 'trainer-2', takeover: true, resume: true },
  'claimJob.response': { decision: 'accepted', job: jobView },
  'renewJob.request': { v: 1, id: jobId, holder: 'trainer-2', epoch: 2 },
  'renewJob.response': { leaseUntil: later, serverAt: at },
  'releaseJob.request': { v: 1, id: jobId, holder: 'trainer-2', epoch: 2 },
  'releaseJob.response': { decision: 'ignored', reason: 'this holder has no lease to give back', job: jobView },
  'pauseJob.request': { v: 1, id: jobId },
  'pauseJob.response': { decision: 'accepted', job: jobView },
  'resumeJob.request': { v: 1, id: jobId },
  'resumeJob.response': { decision: 'accepted', job: jobView },
  'stopJob.request': { v: 1, id: jobId },
  'stopJob.response': { decision: 'accepted', job: jobView },
  'extendJob.request': { v: 1, id: jobId, lifeMs: 3_600_000 },
  'extendJob.response': { decision: 'accepted', job: jobView },
};
