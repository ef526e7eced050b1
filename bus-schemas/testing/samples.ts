/**
 * One message of every kind, as it lies on the wire. `record-fixtures.mjs` writes them down with what they decode to; a
 * released version's fixture is never written again.
 */
import { z } from 'zod';
import { API, ApiAnswer, type ApiVerb, CommandReply } from '../api/schema.ts';
import { Beat, EdgeCommand } from '../edge/schema.ts';
import { decodeCommand, decodeCommit } from '../envelope.ts';
import { WireError } from '../errors.ts';
import { JobCommand } from '../job/schema.ts';
import { CommandRecord } from '../op/command-record.ts';
import { OpAnswer, type OpName, OPS } from '../op/schema.ts';
import { type RecordKind, readEvent, readState } from '../records.ts';
import { ProjectCommand } from '../project/schema.ts';
import { RequestBusCommand } from '../request/schema.ts';
import { RolloutCommand } from '../rollout/schema.ts';
import { LaunchSandboxes, ReleaseSandboxes, SandboxBusCommand, SandboxCommand } from '../sandbox/commands.ts';
import { SandboxRequest } from '../sandbox/spec.ts';
import { at, byType, error, events, later, requestId } from './common-samples.ts';
import { beats, edgeCommands, edgeEvents, edgeState } from './edge-samples.ts';
import { fleetApi } from './fleet-samples.ts';
import { jobApi, jobCommands, jobEvents, jobState } from './job-samples.ts';
import { commandRecords, operations } from './operation-samples.ts';
import { iamApi, projectCommands, projectEvents, projectState } from './project-samples.ts';
import { place, requestApi, requestBusCommands, requestEvents, requestState } from './request-samples.ts';
import { rolloutApi, rolloutCommands, rolloutEvents, rolloutState } from './rollout-samples.ts';
import {
  commit,
  decision,
  launches,
  releases,
  sandboxApi,
  sandboxBusCommands,
  sandboxCommands,
  sandboxEvents,
  sandboxRequests,
  sandboxState,
} from './sandbox-samples.ts';

/** How a fixture of a kind is read. The kind is the fixture file's name. */
export const READERS: Readonly<Record<string, (input: unknown, name: string) => unknown>> = {
  'command-record': (input) => CommandRecord.parse(input),
  command: (input) => decodeCommand(JSON.stringify(input)),
  commit: (input) => decodeCommit(JSON.stringify(input)),
  beat: (input) => Beat.parse(input),
  'sandbox-command': (input) => SandboxCommand.parse(input),
  'sandbox-bus-command': (input) => SandboxBusCommand.parse(input),
  'launch-sandboxes': (input) => LaunchSandboxes.parse(input),
  'release-sandboxes': (input) => ReleaseSandboxes.parse(input),
  'sandbox-request': (input) => SandboxRequest.parse(input),
  'request-bus-command': (input) => RequestBusCommand.parse(input),
  'job-command': (input) => JobCommand.parse(input),
  'rollout-command': (input) => RolloutCommand.parse(input),
  'project-command': (input) => ProjectCommand.parse(input),
  'edge-command': (input) => EdgeCommand.parse(input),
  state: (input, kind) => readState(kind as RecordKind, input, 1),
  event: (input, name) => readEvent(name.split('.')[0] as RecordKind, input, 1),
  api: (input, name) => side(API[name.split('.')[0] as ApiVerb], name).parse(input),
  op: (input, name) => side(OPS[name.split('.')[0] as OpName], name).parse(input),
  answer: (input, name) => z.object({ api: ApiAnswer, op: OpAnswer, reply: CommandReply, error: WireError }).shape[name.split('.')[0] as 'api'].parse(input),
};
const side = (pair: { request: z.ZodType; response: z.ZodType }, name: string): z.ZodType => (name.endsWith('.request') ? pair.request : pair.response);

/** Kind → name → the message on the wire. */
export const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'command-record': commandRecords,
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
  beat: beats,
  'sandbox-command': sandboxCommands,
  'sandbox-bus-command': sandboxBusCommands,
  'launch-sandboxes': launches,
  'sandbox-request': sandboxRequests,
  'project-command': byType(...projectCommands),
  'release-sandboxes': releases,
  'request-bus-command': requestBusCommands,
  'edge-command': edgeCommands,
  'job-command': jobCommands,
  'rollout-command': rolloutCommands,
  state: { rollout: rolloutState, project: projectState, sandbox: sandboxState, request: requestState, edge: edgeState, job: jobState },
  event: { ...events('project', ...projectEvents), ...sandboxEvents, ...requestEvents, ...edgeEvents, ...jobEvents, ...rolloutEvents },
  api: {
    ...iamApi,
    ...fleetApi,
    'info.request': { v: 1 },
    'info.response': { platformVersion: '0.1.0', shards: ['0', '1'], laneCount: 4 },
    ...requestApi,
    ...sandboxApi,
    ...jobApi,
    ...rolloutApi,
  },
  op: operations,
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
