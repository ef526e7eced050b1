/** Messages of requests, single and grouped, as they lie on the wire. */
import { wireError } from '../errors.ts';
import { at, byType, error, events, later, requestId, sandboxId } from './common-samples.ts';
import { spec } from './sandbox-samples.ts';

export const requestState = {
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
const assignment = { index: 0, attempt: 0, edge: 'edge-1', sandboxId };
export const place = { type: 'PlaceSandboxes', project: 'acme', key: 'job-7/step-1', requestId, bodyHash: 'b0d1', count: 2, spec, deadlineAt: later };

export const requestBusCommands = byType(
  place,
  {
    type: 'ReportBatch',
    project: 'acme',
    requestId,
    refused: [{ index: 0, attempt: 0, error }],
    held: [{ index: 1, attempt: 0 }],
    running: [{ index: 2, attempt: 1 }],
    failed: [{ index: 3, attempt: 0, error }],
  },
  { type: 'PlaceGroup', project: 'acme', key: 'job-7/group', requestId, bodyHash: 'b0d1', count: 600, mode: 'allOrNothing', spec, deadlineAt: later },
  { type: 'ReportChunk', project: 'acme', requestId, chunk: 2, phase: 'settled', counts: { running: 87, failed: 1 }, error },
  { type: 'DecideChunk', project: 'acme', requestId, decision: 'abandon', error },
);

export const requestEvents = events(
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
    quotaLease: null,
  },
  { type: 'SandboxesAssigned', at, assignments: [assignment] },
  { type: 'SandboxUnplaceable', at, index: 1, error },
  { type: 'SandboxesHeld', at, indices: [0, 2] },
  { type: 'SandboxesRun', at, indices: [0] },
  { type: 'SandboxDidNotRun', at, index: 2, error },
  { type: 'ChunkDecided', at, decision: 'start', error: null },
  {
    type: 'GroupAccepted',
    at,
    id: requestId,
    project: 'acme',
    key: 'job-7/group',
    bodyHash: 'b0d1',
    count: 600,
    mode: 'allOrNothing',
    spec,
    deadlineAt: later,
    keyExpiresAt: later,
  },
  { type: 'ChunkReported', at, chunk: 1, phase: 'held', counts: { running: 0, failed: 0 } },
  { type: 'GroupDecided', at, decision: 'abandon', error },
);

export const requestApi = {
  'create.request': { v: 1, key: 'job-7/step-1', count: 32, spec: { image: 'debian' }, timeoutMs: 5_000 },
  'create.response': { requestId, bodyHash: 'b0d1' },
  'request.request': { v: 1, id: requestId },
  'request.response': { version: 1, streamSequence: 9, state: requestState },
};
