/**
 * One message of every kind, as it lies on the wire. `record-fixtures.mjs` writes them down with what they decode to; a
 * released version's fixture is never written again.
 */
import { z } from 'zod';
import { API, ApiAnswer, type ApiVerb, CommandReply } from '../api/schema.ts';
import { Beat, EdgeCommand } from '../edge/schema.ts';
import { decodeCommand, decodeCommit } from '../envelope.ts';
import { WireError, wireError } from '../errors.ts';
import { OpAnswer, type OpName, OPS } from '../op/schema.ts';
import { type RecordKind, readEvent, readState } from '../records.ts';
import { RequestBusCommand } from '../request/schema.ts';
import { LaunchSandboxes, SandboxBusCommand, SandboxCommand } from '../sandbox/commands.ts';
import { SandboxRequest } from '../sandbox/spec.ts';

/** How a fixture of a kind is read. The kind is the fixture file's name. */
export const READERS: Readonly<Record<string, (input: unknown, name: string) => unknown>> = {
  command: (input) => decodeCommand(JSON.stringify(input)),
  commit: (input) => decodeCommit(JSON.stringify(input)),
  beat: (input) => Beat.parse(input),
  'sandbox-command': (input) => SandboxCommand.parse(input),
  'sandbox-bus-command': (input) => SandboxBusCommand.parse(input),
  'launch-sandboxes': (input) => LaunchSandboxes.parse(input),
  'sandbox-request': (input) => SandboxRequest.parse(input),
  'request-bus-command': (input) => RequestBusCommand.parse(input),
  'edge-command': (input) => EdgeCommand.parse(input),
  state: (input, kind) => readState(kind as RecordKind, input, 1),
  event: (input, name) => readEvent(name.split('.')[0] as RecordKind, input, 1),
  api: (input, name) => side(API[name.split('.')[0] as ApiVerb], name).parse(input),
  op: (input, name) => side(OPS[name.split('.')[0] as OpName], name).parse(input),
  answer: (input, name) => z.object({ api: ApiAnswer, op: OpAnswer, reply: CommandReply, error: WireError }).shape[name.split('.')[0] as 'api'].parse(input),
};
const side = (pair: { request: z.ZodType; response: z.ZodType }, name: string): z.ZodType => (name.endsWith('.request') ? pair.request : pair.response);

const at = 1_700_000_000_000;
const later = at + 60_000;
const digest = `sha256:${'0'.repeat(64)}`;
const requestId = `rq-3-${'ab'.repeat(16)}`;
const sandboxId = `sb-3-${'0123456789'.repeat(2)}-edge-1`;
const execId = `ex-${'12'.repeat(12)}`;
const error = wireError('START_FAILED', 'no /bin/sh in the image; choose another', { details: { step: 'exec' }, traceId: 't-1' });
const spec = {
  backend: 'container',
  image: 'debian',
  layers: [digest],
  limits: { memoryMiB: 512, swapMiB: 0, cpuMillis: 1_000, cpuWeight: 100, pids: 256, diskMiB: 1_024, openFiles: null, outputBytes: 1_048_576 },
  lives: { totalMs: 3_600_000, runningMs: 600_000, idleMs: 60_000 },
  networkRules: { 'pypi.org': true },
  initUser: 'root',
  env: { LANG: 'C.UTF-8' },
  labels: { job: 'demo' },
  hostname: 'box',
};
const capacity = { sandboxes: 100, memoryMiB: 65_536, cpuMillis: 64_000, pids: 100_000, diskMiB: 65_536, descriptors: 4_000 };
const sandboxState = {
  id: sandboxId,
  project: 'acme',
  edge: 'edge-1',
  status: 'running',
  requestId,
  index: 0,
  attempt: 0,
  spec,
  slot: 7,
  generation: 3,
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
const requestState = {
  id: requestId,
  project: 'acme',
  key: 'job-7/step-1',
  bodyHash: 'b0d1',
  spec,
  createdAt: at,
  deadlineAt: later,
  keyExpiresAt: at + 86_400_000,
  items: [
    { sandboxId, edge: 'edge-1', attempt: 0, refusedBy: [], error: null },
    { sandboxId: null, edge: null, attempt: 1, refusedBy: ['edge-1', 'edge-2'], error: wireError('NO_CAPACITY', 'no node has room') },
  ],
};
const edgeState = {
  name: 'edge-1',
  status: 'active',
  generation: 3,
  instance: 'i-1',
  capacity,
  backends: ['container'],
  registeredAt: at,
  leaseUntil: later,
  lostReason: null,
};
const create = { type: 'CreateSandbox', requestId, index: 0, attempt: 0, spec, slot: 7, generation: 3 };
const assignment = { index: 0, attempt: 0, edge: 'edge-1', sandboxId };
const place = { type: 'PlaceSandboxes', project: 'acme', key: 'job-7/step-1', requestId, bodyHash: 'b0d1', count: 2, spec, deadlineAt: later };
const summary = { totalBytes: 10, storedBytes: 8, discardedBytes: 2, truncated: true, dropped: 'limit' };
const exec = {
  execId,
  state: 'ended',
  startedAt: at,
  endedAt: at + 5,
  exitCode: 137,
  signal: 'KILL',
  reason: 'oom',
  fault: 'agent',
  retry: 'never',
  stdout: summary,
  stderr: { totalBytes: 0, storedBytes: 0, discardedBytes: 0, truncated: false, dropped: null },
  pipesOpen: false,
  oomKills: 1,
  terminal: false,
};
const view = { version: 2, streamSequence: 9, state: sandboxState };
const commit = {
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
type Message = { readonly type: string; readonly [field: string]: unknown };
const byType = (...messages: readonly Message[]) => Object.fromEntries(messages.map((message) => [message.type, message]));
const events = (kind: RecordKind, ...messages: readonly Message[]) => Object.fromEntries(messages.map((message) => [`${kind}.${message.type}`, message]));
const transitional = { at, deadlineAt: later };
const one = { v: 1, id: sandboxId };
const decision = { decision: 'accepted', version: 3 };

/** Kind → name → the message on the wire. */
const fileEntry = {
  type: 'file',
  size: 9,
  storedBytes: 4_096,
  mode: 0o644,
  uid: 0,
  gid: 0,
  linkCount: 1,
  modifiedSeconds: 981_173_106,
  modifiedNanoseconds: 789_000_000,
  target: null,
};

export const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  command: {
    least: { v: 1, id: 'acme:c-1', at, project: 'acme', correlationId: 'c-1', data: { type: 'StopSandbox' } },
    whole: {
      v: 1,
      id: 'acme:c-1',
      at,
      project: 'acme',
      principal: 'ann',
      replyTo: '_INBOX.a.b',
      deadlineAt: later,
      correlationId: 'job-7',
      causationId: 'c-0',
      traceparent: '00-ab-cd-01',
      data: place,
    },
  },
  commit: { least: commit, whole: { ...commit, causationId: 'c-0', principal: 'ann', traceparent: '00-ab-cd-01' } },
  beat: {
    busy: {
      v: 1,
      edge: 'edge-1',
      generation: 3,
      at,
      backends: ['container'],
      capacity,
      used: { ...capacity, sandboxes: 7 },
      accepting: true,
      running: { acme: 7 },
    },
  },
  'sandbox-command': byType(
    create,
    { type: 'ReportPrepared' },
    { type: 'ReportStarted', pid: 4_242 },
    { type: 'ReportFailed', error },
    { type: 'ReportExited', error },
    { type: 'ReportDestroyed' },
    { type: 'ReportPaused' },
    { type: 'ReportResumed' },
    { type: 'ReportSnapshotted', layer: digest },
    { type: 'ReportTransitionFailed', error },
    { type: 'DeadlinePassed', kind: 'idle', version: 1, activityAt: at },
  ),
  'sandbox-bus-command': byType(
    { type: 'StopSandbox' },
    { type: 'DeleteSandbox' },
    { type: 'PauseSandbox' },
    { type: 'ResumeSandbox' },
    { type: 'SnapshotSandbox', snapshotId: 'after-setup' },
    { type: 'ExtendLives', totalMs: 7_200_000, runningMs: 600_000, idleMs: null },
  ),
  'launch-sandboxes': { two: { type: 'LaunchSandboxes', requestId, spec, items: [{ sandboxId, index: 0, attempt: 0 }] } },
  'sandbox-request': {
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
  },
  'request-bus-command': byType(place, { type: 'ReportRefused', project: 'acme', requestId, index: 0, attempt: 0, error }),
  'edge-command': byType(
    { type: 'RegisterEdge', capacity, backends: ['container'], leaseMs: 30_000, instance: 'i-1' },
    { type: 'RenewLease', generation: 3, instance: 'i-1', leaseMs: 30_000 },
    { type: 'DeclareLost', generation: 3, reason: 'silent' },
    { type: 'RetireEdge', generation: 3 },
  ),
  state: { sandbox: sandboxState, request: requestState, edge: edgeState },
  event: {
    ...events(
      'sandbox',
      {
        type: 'SandboxAdmitted',
        at,
        id: sandboxId,
        project: 'acme',
        edge: 'edge-1',
        requestId,
        index: 0,
        attempt: 0,
        spec,
        slot: 7,
        generation: 3,
        totalDeadlineAt: later,
        forkedFrom: null,
      },
      { type: 'SandboxPreparing', ...transitional },
      { type: 'SandboxStarting', ...transitional },
      { type: 'SandboxStarted', at, pid: 4_242, runningDeadlineAt: later, idleDeadlineAt: null },
      { type: 'SandboxPausing', ...transitional },
      { type: 'SandboxPaused', at },
      { type: 'SandboxResuming', ...transitional },
      { type: 'SandboxResumed', at, runningDeadlineAt: null, idleDeadlineAt: later },
      { type: 'SandboxSnapshotting', snapshotId: 'after-setup', ...transitional },
      { type: 'SandboxSnapshotted', at, layer: digest },
      { type: 'SandboxTransitionFailed', at, error },
      { type: 'SandboxLivesExtended', at, totalDeadlineAt: later, runningMs: 60_000, runningDeadlineAt: later, idleMs: null, idleDeadlineAt: null },
      { type: 'SandboxStopping', reason: 'failed', error, ...transitional },
      { type: 'SandboxForgetting', at },
      { type: 'SandboxStopRetried', ...transitional },
      { type: 'SandboxStopped', at },
      { type: 'SandboxFailed', at, error },
    ),
    ...events(
      'request',
      {
        type: 'RequestAccepted',
        at,
        id: requestId,
        project: 'acme',
        key: 'job-7/step-1',
        bodyHash: 'b0d1',
        count: 2,
        spec,
        deadlineAt: later,
        keyExpiresAt: later,
      },
      { type: 'SandboxesAssigned', at, assignments: [assignment] },
      { type: 'SandboxUnplaceable', at, index: 1, error },
    ),
    ...events(
      'edge',
      { type: 'EdgeRegistered', at, name: 'edge-1', generation: 3, instance: 'i-1', capacity, backends: ['container'], leaseUntil: later },
      { type: 'LeaseRenewed', at, leaseUntil: later },
      { type: 'EdgeLost', at, generation: 3, reason: 'silent' },
      { type: 'EdgeRetired', at },
    ),
  },
  api: {
    'info.request': { v: 1 },
    'info.response': { platformVersion: '0.1.0', shards: ['0', '1'], laneCount: 4 },
    'create.request': { v: 1, key: 'job-7/step-1', count: 32, spec: { image: 'debian' }, timeoutMs: 5_000 },
    'create.response': { requestId, bodyHash: 'b0d1' },
    'request.request': { v: 1, id: requestId },
    'request.response': { version: 1, streamSequence: 9, state: requestState },
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
    'snapshot.request': { ...one, snapshotId: 'after-setup' },
    'snapshot.response': decision,
    'extend.request': { ...one, totalMs: 7_200_000, runningMs: 600_000, idleMs: null },
    'extend.response': {
      ...decision,
      lives: { version: 1, totalDeadlineAt: at + 7_200_000, runningMs: 600_000, runningDeadlineAt: at + 600_000, idleMs: null, idleDeadlineAt: null },
    },
    'events.request': one,
    'events.response': { commits: [{ ...commit, streamSequence: 9 }], more: false },
  },
  op: {
    'exec.request': {
      v: 1,
      key: 'k',
      argv: ['ls', '-l'],
      env: { A: 'b' },
      cwd: '/w',
      user: 'bob',
      stdin: 'bytes',
      timeoutMs: 2_000,
      outputLimitBytes: 4_096,
      onFull: 'block',
      terminal: { rows: 24, columns: 80 },
    },
    'exec.response': {
      exec: { ...exec, state: 'running', endedAt: null, exitCode: null, signal: null, reason: null, fault: null, retry: null },
      inline: { stdoutBytes: 8, stderrBytes: 0 },
    },
    'wait.request': { v: 1, execId },
    'wait.response': { exec, inline: { stdoutBytes: 8, stderrBytes: 0 } },
    'read.request': { v: 1, execId, stream: 'stdout', offset: 3 },
    'read.response': { offset: 3, eof: true, summary, ended: true },
    'credit.request': { v: 1, execId, stream: 'stderr', reader: 'r-1', consumed: 4 },
    'credit.response': { leaseMs: 15_000, windowBytes: 4_096, summary, ended: false },
    'resize.request': { v: 1, execId, terminal: { rows: 50, columns: 132 } },
    'resize.response': { applied: true },
    'list.request': { v: 1 },
    'list.response': { execs: [exec] },
    'signal.request': { v: 1, execId, signal: 'KILL', tree: true, sinceInput: true },
    'signal.response': { delivered: true },
    'stdin.request': { v: 1, execId, offset: 0, close: true },
    'stdin.response': { nextOffset: 5 },
    'fetch.request': { v: 1, id: 'x-1', target: 8_080, method: 'POST', path: '/run?x=1', headers: [['accept', '*/*']], more: true, timeoutMs: 5_000 },
    'fetch.response': { head: { status: 201, statusText: 'Created', headers: [['Set-Cookie', 'a=b']] }, offset: 0, eof: false },
    'dial.request': { v: 1, id: 'x-2', target: '/run/server.sock' },
    'dial.response': {},
    'send.request': { v: 1, id: 'x-1', offset: 4, close: true },
    'send.response': { nextOffset: 9 },
    'receive.request': { v: 1, id: 'x-1', offset: 7 },
    'receive.response': { head: null, offset: 7, eof: true },
    'hangup.request': { v: 1, id: 'x-1' },
    'hangup.response': {},
    'fileStat.request': { v: 1, path: '/w/link', follow: false },
    'fileStat.response': { entry: { ...fileEntry, type: 'symlink', target: 'a' } },
    'fileRead.request': { v: 1, user: 'bob', path: '/w/a', offset: 2, maxBytes: 10 },
    'fileRead.response': { entry: fileEntry, eof: true },
    'fileWrite.request': { v: 1, key: 'w-1', path: '/w/a', mode: 0o600, parents: true },
    'fileWrite.response': { entry: fileEntry },
    'fileMkdir.request': { v: 1, key: 'm-1', path: '/w/d' },
    'fileMkdir.response': { entry: { ...fileEntry, type: 'directory' } },
    'fileMove.request': { v: 1, key: 'm-2', from: '/w/a', to: '/w/b', replace: false },
    'fileMove.response': {},
    'fileRemove.request': { v: 1, key: 'r-1', path: '/w/d', recursive: true },
    'fileRemove.response': { removed: 3 },
    'fileOpen.request': { v: 1, session: 's-1', stream: { what: 'write', path: '/w/big', sparse: true } },
    'fileOpen.response': { entry: null },
    'filePull.request': { v: 1, session: 's-1', offset: 5, ack: 5 },
    'filePull.response': { end: { bytes: 9, entries: 1, omittedCount: 1, omitted: [{ path: 'ff', what: 'fifo' }] } },
    'filePush.request': { v: 1, session: 's-1', offset: 0 },
    'filePush.response': { nextOffset: 9 },
    'fileCommit.request': { v: 1, session: 's-1', totalBytes: 9 },
    'fileCommit.response': { entry: fileEntry, end: null },
    'fileClose.request': { v: 1, session: 's-1' },
    'fileClose.response': {},
  },
  answer: {
    'api.ok': { ok: true, data: { requestId } },
    'api.error': { ok: false, error },
    'op.ok': { ok: true, data: null },
    'op.error': { ok: false, error },
    'reply.ok': { commandId: 'acme:c-1', at, result: { ok: true, data: decision } },
    'reply.error': { commandId: 'acme:c-1', at, result: { ok: false, error } },
    'error.least': { code: 'INTERNAL', message: 'unforeseen', outcome: 'unknown', retry: 'later', fault: 'infra' },
  },
};
