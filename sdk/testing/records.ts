/** Commits and states for tests of the SDK: valid by the contract's schemas, with only what a test names being special. */
import type { Commit } from '#bus/envelope.ts';
import type { WireError } from '#bus/errors.ts';
import { type ClientKey, type EdgeName, type ProjectName, type RequestId, requestIdFor, sandboxIdFor } from '#bus/ids.ts';
import { RequestState } from '#bus/request/schema.ts';
import { SandboxSpec } from '#bus/sandbox/spec.ts';
import { SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';

export const PROJECT = 'team' as ProjectName;
export const EDGE = 'node-1' as EdgeName;

export const specFor = (spec: { image?: string; labels?: Record<string, string> } = {}): SandboxSpec =>
  SandboxSpec.parse({
    backend: 'container',
    image: spec.image ?? 'debian',
    layers: [`sha256:${'0'.repeat(64)}`],
    limits: { memoryMiB: 512, cpuMillis: 1_000, pids: 512 },
    lives: { totalMs: 60_000, idleMs: null },
    networkRules: {},
    initUser: 'root',
    env: {},
    labels: spec.labels ?? {},
    hostname: 'box',
  });

export const requestIdOf = (key: string): RequestId => requestIdFor(PROJECT, key as ClientKey, 1);

export const sandboxState = (
  requestId: RequestId,
  index: number,
  attempt: number,
  status: SandboxStatus,
  more: { edge?: EdgeName; failure?: WireError; spec?: SandboxSpec } = {},
): SandboxState => {
  const edge = more.edge ?? EDGE;
  const ended = status === 'stopped' || status === 'failed';
  return SandboxState.parse({
    id: sandboxIdFor(requestId, index, attempt, edge),
    project: PROJECT,
    edge,
    status,
    requestId,
    index,
    attempt,
    spec: more.spec ?? specFor(),
    slot: index,
    generation: 1,
    pid: status === 'running' ? 4_242 : null,
    createdAt: 1,
    startedAt: status === 'running' ? 2 : null,
    endedAt: ended ? 3 : null,
    totalDeadlineAt: 60_001,
    idleDeadlineAt: null,
    livesVersion: 0,
    transitionDeadlineAt: null,
    returnTo: null,
    snapshotId: null,
    snapshots: [],
    stopReason: status === 'stopped' || status === 'stopping' ? 'requested' : null,
    forget: false,
    failure: more.failure ?? null,
    forkedFrom: null,
  });
};

export type FakeItem = { attempt: number; edge: EdgeName | null; error?: WireError; progress?: 'sent' | 'run' };

export const requestState = (key: string, items: readonly FakeItem[], bodyHash = 'hash', id = requestIdOf(key)): RequestState => {
  return RequestState.parse({
    id,
    project: PROJECT,
    key,
    bodyHash,
    spec: specFor(),
    createdAt: 1,
    deadlineAt: 120_001,
    keyExpiresAt: 86_400_001,
    items: items.map(({ attempt, edge, error, progress = 'sent' }, index) => ({
      sandboxId: edge ? sandboxIdFor(id, index, attempt, edge) : null,
      edge,
      attempt,
      progress,
      refusedBy: [],
      error: error ?? null,
    })),
  });
};

export const commitOf = (kind: 'sandbox' | 'request', actorId: string, version: number, state: object, eventType: string, event: object = {}): Commit => ({
  v: 1,
  kind,
  actorId,
  version,
  at: version as Commit['at'],
  commandId: `c-${version}`,
  correlationId: 'corr',
  principal: 'test',
  lastCommandSequence: 0,
  schema: 1,
  events: [{ type: eventType, at: version, ...event }],
  state: state as Commit['state'],
});
