/** One request and every command it can get, with the values that make a difference. */
import { wireError } from '#bus/errors.ts';
import { ClientKey, type EdgeName, type ProjectName, requestIdFor } from '#bus/ids.ts';
import type { ChunkPhase, GroupMode } from '#bus/request/group.ts';
import type { RequestCommand } from '#bus/request/schema.ts';
import { requestAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { spec } from '../../sandbox/testing/samples.ts';

export const T0 = 1_700_000_000_000;
export const DEADLINE_MS = 120_000;
export const project = 'acme' as ProjectName;
export const key = ClientKey.parse('job-7/step-1');
export const requestId = requestIdFor(project, key, 4);
export const address = requestAddress(project, requestId);
export const edgeNamed = (n: number) => `edge-${n}` as EdgeName;
export const E1 = edgeNamed(1);
export const E2 = edgeNamed(2);

type Place = Extract<RequestCommand, { type: 'PlaceSandboxes' }>;
export const place = (choices: readonly (EdgeName | null)[], override: Partial<Place> = {}): Place => ({
  type: 'PlaceSandboxes',
  project,
  key,
  requestId,
  bodyHash: 'b0d1',
  count: choices.length,
  spec,
  forkedFrom: null,
  deadlineAt: (T0 + DEADLINE_MS) as TimestampMs,
  choices: [...choices],
  chunkOf: null,
  ...override,
});
export const full = wireError('NODE_FULL', 'memoryMiB: 512 asked for, 0 free', { details: { dimension: 'memoryMiB' } });
export const missing = wireError('LAYER_NOT_FOUND', 'layer sha256:… is not in the store');
export const impossible = wireError('USER_NOT_FOUND', 'no user bob in the image');
type Report = Extract<RequestCommand, { type: 'ReportBatch' }>;
export const report = (news: Partial<Report>): Report => ({
  type: 'ReportBatch',
  project,
  requestId,
  refused: [],
  held: [],
  running: [],
  failed: [],
  choices: [],
  ...news,
});
export const refuse = (index: number, attempt: number, choice: EdgeName | null, error = full): RequestCommand =>
  report({ refused: [{ index, attempt, error }], choices: [choice] });

/** The same request as chunk 1 of a group. */
export const parentId = requestIdFor(project, ClientKey.parse('job-7/group'), 4);
export const chunkOf = (mode: GroupMode): NonNullable<Place['chunkOf']> => ({ requestId: parentId, chunk: 1, first: 256, mode });
export const decide = (decision: 'start' | 'abandon'): RequestCommand => ({
  type: 'DecideChunk',
  project,
  requestId,
  decision,
  error: decision === 'abandon' ? full : null,
});

/** The same key as the parent of a group. */
export const placeGroup = (mode: GroupMode, count: number): RequestCommand => ({
  type: 'PlaceGroup',
  project,
  key,
  requestId,
  bodyHash: 'b0d1',
  count,
  mode,
  spec,
  forkedFrom: null,
  deadlineAt: (T0 + DEADLINE_MS) as TimestampMs,
});
export const reportChunk = (chunk: number, phase: ChunkPhase, running = 0): RequestCommand => ({
  type: 'ReportChunk',
  project,
  requestId,
  chunk,
  phase,
  counts: { running, failed: phase === 'lacking' ? 1 : 0 },
  error: phase === 'lacking' ? full : null,
});

export const lease = `ql-${'0a'.repeat(12)}`;
export const overQuota = wireError('QUOTA_EXCEEDED', 'project acme may have 1 sandboxes and has them');
export const reportOverQuota: RequestCommand = { type: 'ReportOverQuota', project, requestId, error: overQuota };

export const COMMANDS: readonly RequestCommand[] = [
  place([E1, E2, null]),
  place([E2, E2, E2]),
  place([E1, E1, E1], { bodyHash: 'other' }),
  place([]),
  ...[0, 1, 2].flatMap((attempt) => [E1, E2, edgeNamed(3), null].flatMap((choice) => [refuse(0, attempt, choice), refuse(1, attempt, choice, missing)])),
  refuse(0, 0, E2, impossible),
  refuse(9, 0, E1),
  place([E1, E2, E1], { quota: { lease, count: 1, error: overQuota } }),
  reportOverQuota,
  report({ held: [0, 1].map((index) => ({ index, attempt: 0 })) }),
  report({ held: [{ index: 1, attempt: 1 }], running: [{ index: 0, attempt: 0 }] }),
  report({ running: [0, 1, 2].map((index) => ({ index, attempt: 0 })) }),
  report({ failed: [{ index: 1, attempt: 0, error: impossible }] }),
  report({ running: [{ index: 9, attempt: 0 }] }),
];
/** What a chunk can get beside. */
export const CHUNK_COMMANDS: readonly RequestCommand[] = [decide('start'), decide('abandon'), ...COMMANDS.filter(({ type }) => type === 'ReportBatch')];
export const DELAYS_MS: readonly number[] = [0, 1_000, DEADLINE_MS, 25 * 3_600_000];
