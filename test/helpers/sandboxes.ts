/** Sandboxes and their commits for tests of read models. */
import type { EdgeName, LayerDigest, ProjectName, RequestId, SandboxId, Shard } from '#bus/ids.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import { SandboxState as SandboxStateSchema } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { aCommit } from '#test/helpers/commits.ts';

/** The n-th sandbox of a shard; ids sort by number. */
export const sandboxId = (n: number, shard = '0', edge = 'edge-a'): SandboxId => `sb-${shard}-${n.toString(16).padStart(20, '0')}-${edge}` as SandboxId;

export type SandboxPart = {
  readonly project?: string;
  readonly shard?: string;
  readonly edge?: string;
  readonly status?: SandboxStatus;
  readonly labels?: Record<string, string>;
};

export const aSandboxState = (
  n: number,
  { project = 'alpha', shard = '0', edge = 'edge-a', status = 'running', labels = {} }: SandboxPart = {},
): SandboxState =>
  SandboxStateSchema.parse({
    id: sandboxId(n, shard, edge),
    project,
    edge: edge as EdgeName,
    status,
    requestId: `rq-${shard}-${'0'.repeat(32)}` as RequestId,
    index: n,
    attempt: 0,
    spec: {
      backend: 'container',
      image: 'debian',
      layers: [`sha256:${'a'.repeat(64)}` as LayerDigest],
      limits: { memoryMiB: 512, cpuMillis: 1_000, pids: 512 },
      lives: { totalMs: 3_600_000, idleMs: null },
      networkRules: {},
      initUser: 'root',
      env: {},
      labels,
      hostname: 'sandbox',
    },
    slot: n % 4_096,
    generation: 1,
    pid: null,
    createdAt: 1_700_000_000_000 + n,
    startedAt: null,
    endedAt: null,
    totalDeadlineAt: 1_700_003_600_000,
    idleDeadlineAt: null,
    livesVersion: 0,
    transitionDeadlineAt: null,
    returnTo: null,
    snapshotId: null,
    snapshots: [],
    stopReason: null,
    forget: false,
    failure: null,
    forkedFrom: null,
  });

/** Commit `version` of the n-th sandbox, as it lies at `sequence`. */
export const aSandboxCommit = (n: number, version: number, sequence: number, part: SandboxPart = {}): StoredCommit => {
  const state = aSandboxState(n, part);
  const address = sandboxAddress((part.project ?? 'alpha') as ProjectName, state.id);
  return { address, sequence, commit: aCommit({ ...address, shard: (part.shard ?? '0') as Shard }, version, state) };
};
