/** Forks: what each state of the origin leads to, and what is taken over from it. */
import { describe, expect, test } from 'vitest';
import { ForkChanges } from '#bus/api/fork.ts';
import { wireError } from '#bus/errors.ts';
import type { LayerDigest, SnapshotId } from '#bus/ids.ts';
import { PLATFORM_LABELS, SandboxRequest } from '#bus/sandbox/spec.ts';
import { SANDBOX_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import { aSandboxState } from '#test/helpers/sandboxes.ts';
import { at, T0 } from './testing/samples.ts';
import { forkRequestOf, forkStep } from './sandbox.fork.ts';

const CAPTURE = 'fork-0123' as SnapshotId;
const captured = (state: SandboxState): SandboxState => ({
  ...state,
  snapshots: [{ id: CAPTURE, layer: `sha256:${'c'.repeat(64)}` as LayerDigest, at: at(T0), purpose: 'fork' }],
});

describe('what comes next', () => {
  const EXPECTED: Record<SandboxStatus, string> = {
    admitted: 'wait',
    preparing: 'wait',
    starting: 'wait',
    running: 'capture',
    pausing: 'wait',
    paused: 'capture',
    resuming: 'wait',
    snapshotting: 'wait',
    stopping: 'INVALID_STATE',
    stopped: 'SANDBOX_ENDED',
    failed: 'SANDBOX_ENDED',
  };
  test.each(SANDBOX_STATUSES)('of one that is %s', (status) => {
    const state = aSandboxState(1, { status });
    const step = forkStep(state, CAPTURE);
    expect(step.do === 'refuse' ? step.error.code : step.do).toBe(EXPECTED[status]);
    expect(forkStep(captured(state), CAPTURE)).toEqual({ do: 'place', origin: captured(state) });
    expect(forkStep(captured(state), 'fork-other' as SnapshotId).do).toBe(step.do);
  });

  test('one that failed says why', () => {
    const failure = wireError('START_FAILED', 'no /bin/sh in the image');
    const step = forkStep({ ...aSandboxState(1, { status: 'failed' }), stopReason: 'failed', failure }, CAPTURE);
    expect(step).toMatchObject({
      do: 'refuse',
      error: { code: 'SANDBOX_ENDED', details: { status: 'failed' }, message: expect.stringContaining('no /bin/sh') },
    });
  });
});

describe('what a fork takes over', () => {
  const state = aSandboxState(1, {
    labels: { branch: 'a', [PLATFORM_LABELS.job]: 'jb-1', [PLATFORM_LABELS.rollout]: 'ro-1', [PLATFORM_LABELS.role]: 'agent' },
  });
  const origin: SandboxState = {
    ...state,
    spec: {
      ...state.spec,
      isolation: 'requireApart',
      require: { gpu: 'a100' },
      env: { WHO: 'origin' },
      networkRules: { pypi: true },
      recordCommands: true,
      lives: { ...state.spec.lives, idlePauseMs: 5_000 as never },
    },
  };
  const requestOf = (changes: object) => forkRequestOf(origin, CAPTURE, ForkChanges.parse(changes));

  test('everything that is not said, but no place in an episode', () => {
    const { layers: _, recoveredFrom: __, labels, ...spec } = origin.spec;
    expect(requestOf({})).toEqual({
      ...spec,
      image: { snapshot: CAPTURE, sandbox: origin.id },
      workspaces: [],
      toolkits: [],
      job: labels[PLATFORM_LABELS.job],
      labels: { branch: 'a' },
    });
    expect(SandboxRequest.safeParse({ ...requestOf({}), job: undefined }).success).toBe(true);
  });

  test('what is said counts: limits and lives one by one, sets as a whole', () => {
    const limits = { memoryMiB: 64 };
    const made = requestOf({ limits, lives: { totalMs: 2_000 }, env: {}, labels: { branch: 'b' }, networkRules: {}, isolation: 'shared', hostname: 'fork' });
    expect(made).toMatchObject({ limits: { ...origin.spec.limits, ...limits }, lives: { ...origin.spec.lives, totalMs: 2_000 }, hostname: 'fork' });
    expect([made.env, made.labels, made.networkRules, made.isolation, made.require]).toEqual([{}, { branch: 'b' }, {}, 'shared', { gpu: 'a100' }]);
  });
});
