import { describe, expect, test } from 'vitest';
import type { CommandEnvelope } from '#bus/envelope.ts';
import { wireError } from '#bus/errors.ts';
import type { EdgeName, ProjectName, RequestId } from '#bus/ids.ts';
import type { LaunchSandboxes } from '#bus/sandbox/commands.ts';
import type { TimestampMs } from '#bus/units.ts';
import { batchReport, createIdOf, NO_NEWS, overtookItsCreate, type NodeFacts, refusalOfBatch, refusedBefore, unsettledBy } from './launch.ts';
import { ADMISSION_LIMITS, COMMAND_LIMITS } from './limits.ts';

const node: NodeFacts = {
  edge: 'edge-a' as EdgeName,
  now: 1_000,
  accepting: true,
  sentToLost: false,
  availableMemoryMiB: ADMISSION_LIMITS.memoryFloorMiB,
  freeDiskMiB: ADMISSION_LIMITS.diskFloorMiB,
  labels: { gpu: 'a100' },
  missingLayer: null,
};
const spec = { backend: 'container', require: {} } as unknown as LaunchSandboxes['spec'];

describe('refusal of a batch', () => {
  test('a node at its floors takes it, up to the very deadline', () => {
    expect(refusalOfBatch(undefined, spec, node)).toBeNull();
    expect(refusalOfBatch(1_000, spec, node)).toBeNull();
  });

  test.each<[string, Partial<NodeFacts>]>([
    ['EDGE_FENCED', { accepting: false }],
    ['EDGE_FENCED', { sentToLost: true }],
    ['NODE_FULL', { availableMemoryMiB: ADMISSION_LIMITS.memoryFloorMiB - 1 }],
    ['NODE_FULL', { freeDiskMiB: ADMISSION_LIMITS.diskFloorMiB - 1 }],
    ['LAYER_NOT_FOUND', { missingLayer: 'sha256:0' }],
    ['DEADLINE_EXCEEDED', { now: 1_001 }],
  ])('%s for %o', (code, facts) => {
    expect(refusalOfBatch(1_000, spec, { ...node, ...facts })).toMatchObject({ code, message: expect.stringContaining('edge-a') });
  });

  test('a backend that the node lacks is not a question of room', () => {
    expect(refusalOfBatch(undefined, { ...spec, backend: 'vm' }, node)).toMatchObject({ code: 'NOT_SUPPORTED', retry: 'never' });
  });
});

test('a label that the node lacks is a question of another node', () => {
  expect(refusalOfBatch(undefined, { ...spec, require: { gpu: 'a100' } }, node)).toBeNull();
  expect(refusalOfBatch(undefined, { ...spec, require: { gpu: 'h100' } }, node)).toMatchObject({ code: 'NODE_FULL', details: { lacking: 'gpu' } });
});

test('ids of creates and reports depend on what they are about alone, so repetitions are the same message', () => {
  const envelope = { id: 'acme:rq:forward', project: 'acme' as ProjectName, replyTo: 'somewhere' } as CommandEnvelope;
  const requestId = 'rq-0-1' as RequestId;
  const item = { index: 3, attempt: 1 } as LaunchSandboxes['items'][number];
  expect(createIdOf(envelope, item)).toBe('acme:rq:forward:3:1');
  const refused = (at: number, attempt = 1) =>
    batchReport(envelope, requestId, { ...NO_NEWS, refused: [{ index: 3, attempt, error: wireError('NODE_FULL', 'full') }] }, at as TimestampMs);
  expect(refused(1).id).toBe(refused(2).id);
  expect(refused(1).id).not.toBe(refused(1, 2).id);
  expect(refused(1)).toMatchObject({ causationId: envelope.id, replyTo: undefined, data: { type: 'ReportBatch', refused: [{ index: 3, attempt: 1 }] } });
});

test('a create that meets its tombstone was refused before; any other answer was not a refusal', () => {
  const edge = 'edge-a' as EdgeName;
  expect(refusedBefore(edge, { ok: false, error: wireError('SANDBOX_ENDED', 'forgotten') })).toMatchObject({ code: 'NODE_FULL', retry: 'later' });
  expect(refusedBefore(edge, { ok: false, error: wireError('INVALID_STATE', 'no') })).toBeNull();
  expect(refusedBefore(edge, { ok: true, decision: 'ignored', reason: '', version: 1 })).toBeNull();
});

test('a stop that finds nothing comes again a few times; a pause that finds nothing does not', () => {
  const missing = { ok: false, error: wireError('SANDBOX_NOT_FOUND', 'none') } as const;
  expect(overtookItsCreate('StopSandbox', missing, 1)).toBe(true);
  expect(overtookItsCreate('DeleteSandbox', missing, COMMAND_LIMITS.earlyStopRetries + 1)).toBe(false);
  expect(overtookItsCreate('PauseSandbox', missing, 1)).toBe(false);
  expect(overtookItsCreate('StopSandbox', { ok: true, decision: 'ignored', reason: '', version: 1 }, 1)).toBe(false);
});

test('only an answer that may still change brings the command back', () => {
  expect(unsettledBy({ ok: true, decision: 'ignored', reason: '', version: 1 })).toBeNull();
  expect(unsettledBy({ ok: false, error: wireError('INVALID_STATE', 'no') })).toBeNull();
  expect(unsettledBy({ ok: false, error: wireError('BUS_UNAVAILABLE', 'away') })).toMatchObject({ code: 'BUS_UNAVAILABLE' });
});
