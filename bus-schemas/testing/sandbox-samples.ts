/** Messages of sandboxes, as they lie on the wire. */
import { at, byType, digest, error, events, later, requestId, sandboxId } from './common-samples.ts';

const snapshotFacts = {
  files: 3,
  contentBytes: 70_000,
  storedBytes: 8_192,
  sharedBytes: 65_536,
  frozenMs: 4.5,
  totalMs: 61.25,
  removedCount: 1,
  removed: [{ rule: '/tmp/**', path: '/tmp/x' }],
};
export const spec = {
  backend: 'container',
  image: 'debian',
  layers: [digest],
  limits: { memoryMiB: 512, swapMiB: 0, cpuMillis: 1_000, cpuWeight: 100, pids: 256, diskMiB: 1_024, openFiles: null, outputBytes: 1_048_576 },
  lives: { totalMs: 3_600_000, runningMs: 600_000, idleMs: 60_000, idlePauseMs: 30_000 },
  networkRules: { 'pypi.org': true },
  initUser: 'root',
  env: { LANG: 'C.UTF-8' },
  labels: { job: 'demo' },
  hostname: 'box',
};
/** What an Edge has admitted, and where. */
const admitted = { id: sandboxId, project: 'acme', edge: 'edge-1', requestId, index: 0, attempt: 0, spec, slot: 7, generation: 3 };
export const sandboxState = {
  ...admitted,
  status: 'running',
  pid: 4_242,
  createdAt: at,
  startedAt: at + 50,
  endedAt: null,
  totalDeadlineAt: at + 3_600_000,
  runningDeadlineAt: at + 600_050,
  idleDeadlineAt: later,
  livesVersion: 0,
  transitionDeadlineAt: null,
  returnTo: null,
  snapshotId: null,
  snapshots: [],
  stopReason: null,
  forget: false,
  failure: null,
  forkedFrom: null,
};
const create = { type: 'CreateSandbox', requestId, index: 0, attempt: 0, spec, slot: 7, generation: 3 };
const view = { version: 2, streamSequence: 9, state: sandboxState };
export const commit = {
  v: 1,
  kind: 'sandbox',
  actorId: sandboxId,
  version: 2,
  at,
  commandId: 'acme:c-1',
  correlationId: 'job-7',
  lastCommandSequence: 12,
  schema: 1,
  events: [{ type: 'SandboxStarted', at, pid: 4_242, runningDeadlineAt: at + 600_050, idleDeadlineAt: later }],
  state: sandboxState,
};
const transitional = { at, deadlineAt: later };
const one = { v: 1, id: sandboxId };
export const decision = { decision: 'accepted', version: 3 };

export const sandboxCommands = byType(
  create,
  { type: 'StartHeld' },
  { type: 'ReportPrepared' },
  { type: 'ReportStarted', pid: 4_242 },
  { type: 'ReportFailed', error },
  { type: 'ReportExited', error },
  { type: 'ReportLost', error },
  { type: 'ReportDestroyed' },
  { type: 'ReportPaused' },
  { type: 'ReportResumed' },
  { type: 'ReportSnapshotted', layer: digest, facts: snapshotFacts },
  { type: 'ReportTransitionFailed', error },
  { type: 'DeadlinePassed', kind: 'idle', version: 1, activityAt: at },
);

export const sandboxBusCommands = byType(
  { type: 'StopSandbox' },
  { type: 'DeleteSandbox' },
  { type: 'PauseSandbox' },
  { type: 'ResumeSandbox' },
  { type: 'SnapshotSandbox', snapshotId: 'after-setup', scrub: ['/tmp/**'] },
  { type: 'ExtendLives', totalMs: 7_200_000, runningMs: 600_000, idleMs: null },
);

export const launches = {
  held: { type: 'LaunchSandboxes', requestId, spec, items: [{ sandboxId, index: 0, attempt: 0 }], heldUntil: later, follow: true },
  two: { type: 'LaunchSandboxes', requestId, spec, items: [{ sandboxId, index: 0, attempt: 0 }] },
};

export const releases = { two: { type: 'ReleaseSandboxes', requestId, decision: 'start', items: [{ sandboxId, index: 0, attempt: 0 }] } };

export const sandboxRequests = {
  least: { image: 'debian' },
  whole: {
    backend: 'microvm',
    image: digest,
    workspaces: ['team/repo:1.2'],
    toolkits: ['tools'],
    limits: { memoryMiB: 4_096, swapMiB: 512, cpuMillis: 4_000, cpuWeight: 200, pids: 1_000, diskMiB: 10_240, openFiles: 1_024, outputBytes: 65_536 },
    lives: { totalMs: 3_600_000, runningMs: 1_800_000, idleMs: 300_000 },
    networkRules: { npm: false, pypi: true },
    initUser: '1000:1000',
    env: { PATH: '/bin' },
    labels: { 'team/job': 'demo' },
    hostname: 'box-1',
  },
};

export const sandboxEvents = events(
  'sandbox',
  {
    type: 'SandboxAdmitted',
    at,
    ...admitted,
    totalDeadlineAt: later,
    forkedFrom: null,
  },
  { type: 'SandboxPreparing', ...transitional },
  { type: 'SandboxStarting', ...transitional },
  { type: 'SandboxStarted', at, pid: 4_242, runningDeadlineAt: later, idleDeadlineAt: null },
  { type: 'SandboxPausing', ...transitional, reason: 'idle', idleDeadlineAt: later },
  { type: 'SandboxPaused', at, memoryGivenBackMiB: 120 },
  { type: 'SandboxResuming', ...transitional },
  { type: 'SandboxResumed', at, runningDeadlineAt: null, idleDeadlineAt: later },
  { type: 'SandboxSnapshotting', snapshotId: 'after-setup', scrub: ['/tmp/**'], ...transitional },
  { type: 'SandboxSnapshotted', at, snapshotId: 'after-setup', layer: digest, facts: snapshotFacts },
  { type: 'SandboxTransitionFailed', at, error },
  { type: 'SandboxLivesExtended', at, totalDeadlineAt: later, runningMs: 60_000, runningDeadlineAt: later, idleMs: null, idleDeadlineAt: null },
  { type: 'SandboxStopping', reason: 'failed', error, ...transitional },
  { type: 'SandboxForgetting', at },
  { type: 'SandboxStopRetried', ...transitional },
  { type: 'SandboxStopped', at },
  { type: 'SandboxFailed', at, error },
);

export const sandboxApi = {
  'get.request': { v: 1, ids: [sandboxId] },
  'get.response': { sandboxes: [view, null] },
  'list.request': { v: 1, labels: { job: 'demo' }, statuses: ['running'], changedAfter: { '3': 4 }, after: sandboxId, atLeast: { '3': 9 } },
  'list.response': { sandboxes: [view], next: null, asOf: { '3': 9 } },
  'stop.request': { ...one, key: 'k' },
  'stop.response': decision,
  'delete.request': one,
  'delete.response': { decision: 'ignored', reason: 'already deleted', version: 3 },
  'pause.request': one,
  'pause.response': { decision: 'pending' },
  'resume.request': one,
  'resume.response': decision,
  'pauseMany.request': { v: 1, key: 'nightly', ids: [sandboxId] },
  'pauseMany.response': {
    items: [
      { id: sandboxId, decision },
      { id: sandboxId, error },
    ],
    next: null,
  },
  'resumeMany.request': { v: 1, labels: { job: 'nightly' }, after: sandboxId, limit: 10, atLeast: { 0: 9 } },
  'resumeMany.response': { items: [], next: sandboxId },
  'snapshot.request': { ...one, snapshotId: 'after-setup' },
  'snapshot.response': decision,
  'fork.request': { v: 1, id: sandboxId, key: 'branch-3', count: 16, changes: { limits: { memoryMiB: 256 }, env: { BRANCH: '3' } } },
  'fork.response': { decision: 'accepted', requestId, bodyHash: 'ab'.repeat(32) },
  'snapshots.request': { v: 1, sandboxId },
  'snapshots.response': { snapshots: [{ id: 'after-setup', sandboxId, at, layers: [digest], facts: snapshotFacts }], next: null },
  'deleteSnapshot.request': { v: 1, snapshotId: 'after-setup' },
  'deleteSnapshot.response': { deleted: true },
  'extend.request': { ...one, totalMs: 7_200_000, runningMs: 600_000, idleMs: null, idlePauseMs: 60_000 },
  'extend.response': {
    ...decision,
    lives: { version: 1, totalDeadlineAt: at + 7_200_000, runningMs: 600_000, runningDeadlineAt: at + 600_000, idleMs: null, idleDeadlineAt: null },
  },
  'events.request': one,
  'events.response': { commits: [{ ...commit, streamSequence: 9 }], more: false },
};
