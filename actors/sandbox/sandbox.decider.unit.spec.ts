import { describe, expect, test } from 'vitest';
import { wireError } from '#bus/errors.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { SANDBOX_LIMITS } from './limits.ts';
import { sandboxDefinition } from './sandbox.definition.ts';
import {
  address,
  at,
  create,
  deadline,
  destroyed,
  edge,
  exited,
  failed,
  IDLE_MS,
  IDLE_PAUSE_MS,
  ms,
  project,
  remove,
  RUNNING_MS,
  sandboxId,
  snapshotOf,
  snapshotted,
  spec,
  started,
  stop,
  T0,
  TOTAL_MS,
} from './testing/samples.ts';

/** Commands a second apart, unless the moment after T0 is given; all must be accepted. */
const given = (...commands: (SandboxCommand | readonly [SandboxCommand, number])[]) =>
  givenActor(
    sandboxDefinition,
    address,
    historyOf(
      sandboxDefinition,
      address,
      commands.map((entry, i) => ('type' in entry ? { command: entry, at: T0 + i * 1_000 } : { command: entry[0], at: T0 + entry[1] })),
    ),
  );
const running = [create, started] as const;
const pause: SandboxCommand = { type: 'PauseSandbox' };
const paused: SandboxCommand = { type: 'ReportPaused' };
const resume: SandboxCommand = { type: 'ResumeSandbox' };
const snapshot = snapshotOf('s1');
const notSupported = wireError('NOT_SUPPORTED', 'this backend cannot do it yet');
const stateOf = (g: ReturnType<typeof given>) => {
  if (!g.state) throw new Error('no state');
  return g.state;
};

describe('create', () => {
  test('with local layers goes as far as starting in one commit', () => {
    given()
      .when(create, T0)
      .thenEvents(
        { type: 'SandboxAdmitted', id: sandboxId, project, edge, slot: 7, generation: 3, totalDeadlineAt: at(T0 + TOTAL_MS), forkedFrom: null },
        { type: 'SandboxPreparing' },
        { type: 'SandboxStarting', deadlineAt: at(T0 + SANDBOX_LIMITS.startingMs) },
      );
  });

  test('waits for layers that have to be fetched', () => {
    const remote = { ...create, layersLocal: false };
    given()
      .when(remote, T0)
      .thenEvents({ type: 'SandboxAdmitted' }, { type: 'SandboxPreparing', deadlineAt: at(T0 + SANDBOX_LIMITS.preparingMs) });
    given(remote)
      .when({ type: 'ReportPrepared' }, T0 + 5)
      .thenEvents({ type: 'SandboxStarting' });
  });

  test('again by the same request is ignored, by another is refused', () => {
    given(create)
      .when(create, T0 + 1)
      .thenIgnored(/already been created/);
    given(create, stop, destroyed)
      .when(create, T0 + 9_000)
      .thenIgnored(/already been created/);
    given(create)
      .when({ ...create, attempt: 1 }, T0 + 1)
      .thenRejected('INVALID_STATE', /already belongs to request/);
  });

  test('under something that is not a sandbox id is refused', () => {
    givenActor(sandboxDefinition, { ...address, id: 'sb-nonsense' }, [])
      .when(create, T0)
      .thenRejected('INVALID_ARGUMENT', /not a sandbox id/);
  });

  test('the second commit is the start, and idle time begins there', () => {
    given(create)
      .when(started, T0 + 50)
      .thenEvents({ type: 'SandboxStarted', pid: 4_242, idleDeadlineAt: at(T0 + 50 + IDLE_MS) });
    const immortal = { ...create, spec: { ...spec, lives: { ...spec.lives, idleMs: null } } };
    given(immortal)
      .when(started, T0 + 50)
      .thenEvents({ type: 'SandboxStarted', idleDeadlineAt: null });
  });
});

describe('what does not exist', () => {
  test.each([stop, remove, pause, resume, snapshot, { type: 'ExtendLives', totalMs: ms(5_000) } as const])('$type is told so', (command) => {
    given()
      .when(command, T0)
      .thenRejected('SANDBOX_NOT_FOUND', /no sandbox/);
  });
  test('reports about it are late', () =>
    given()
      .when(destroyed, T0)
      .thenIgnored(/no such sandbox/));
});

describe('stop and delete', () => {
  test('before anything was launched still destroys what a launch may have left', () => {
    const g = given(create, stop);
    expect(sandboxDefinition.pendingEffects(stateOf(g))).toMatchObject([{ type: 'ensureDestroyed', slot: 7 }]);
    g.when(started, T0 + 2_000).thenIgnored(/late/);
    g.when(destroyed, T0 + 2_000).thenEvents({ type: 'SandboxStopped' });
  });

  test.each([
    ['preparing', [{ ...create, layersLocal: false }]],
    ['pausing', [...running, pause]],
    ['paused', [...running, pause, paused]],
    ['resuming', [...running, pause, paused, resume]],
    ['snapshotting', [...running, snapshot]],
  ] as [string, SandboxCommand[]][])('are obeyed at once while %s', (status, commands) => {
    const g = given(...commands);
    expect(g.state?.status).toBe(status);
    g.when(stop, T0 + 60_000).thenEvents({
      type: 'SandboxStopping',
      reason: 'requested',
      error: null,
      deadlineAt: at(T0 + 60_000 + SANDBOX_LIMITS.stoppingMs),
    });
    g.when(remove, T0 + 60_000).thenEvents({ type: 'SandboxStopping', reason: 'deleted' });
  });

  test('again change nothing, except that a delete adds the forgetting', () => {
    given(...running, stop)
      .when(stop, T0 + 9_000)
      .thenIgnored(/already stopping/);
    given(...running, stop)
      .when(remove, T0 + 9_000)
      .thenEvents({ type: 'SandboxForgetting' });
    given(...running, remove)
      .when(remove, T0 + 9_000)
      .thenIgnored(/already being deleted/);
    given(...running, stop, destroyed)
      .when(stop, T0 + 9_000)
      .thenIgnored(/already stopped/);
    given(...running, stop, destroyed)
      .when(remove, T0 + 9_000)
      .thenEvents({ type: 'SandboxForgetting' });
    given(...running, remove, destroyed)
      .when(remove, T0 + 9_000)
      .thenIgnored(/already deleted/);
  });

  test('a destroy that takes too long is tried again, for ever', () => {
    const g = given(...running, stop);
    const dueAt = T0 + 2_000 + SANDBOX_LIMITS.stoppingMs;
    g.when(deadline('transition'), dueAt - 1).thenIgnored(/earlier transition/);
    g.when(deadline('transition'), dueAt).thenEvents({ type: 'SandboxStopRetried', deadlineAt: at(dueAt + SANDBOX_LIMITS.stoppingMs) });
  });
});

describe('failure', () => {
  test('of a launch is a stop that remembers why, then failed', () => {
    given(create)
      .when(failed, T0 + 5)
      .thenEvents({ type: 'SandboxStopping', reason: 'failed', error: { code: 'START_FAILED' } as never });
    const g = given(create, failed, destroyed);
    expect(g.state).toMatchObject({ status: 'failed', pid: null, failure: { code: 'START_FAILED', fault: 'environment' }, endedAt: T0 + 2_000 });
  });

  test('of the payload keeps whose fault it was', () => {
    expect(given(...running, exited, destroyed).state).toMatchObject({ status: 'failed', failure: { code: 'SANDBOX_FAILED', fault: 'agent' } });
    given(...running, pause, paused)
      .when(exited, T0 + 9_000)
      .thenEvents({ type: 'SandboxStopping', reason: 'failed' });
    given(create)
      .when(exited, T0 + 5)
      .thenEvents({ type: 'SandboxStopping', reason: 'failed' });
    given(...running, stop)
      .when(exited, T0 + 9_000)
      .thenIgnored(/late/);
    given(...running)
      .when(failed, T0 + 9_000)
      .thenIgnored(/late/);
  });

  test('a launch that never reports fails at its deadline', () => {
    given(create)
      .when(deadline('transition'), T0 + SANDBOX_LIMITS.startingMs)
      .thenEvents({ type: 'SandboxStopping', reason: 'failed', error: { code: 'LAUNCH_FAILED', fault: 'infra' } as never });
    given(create, started)
      .when(deadline('transition'), T0 + SANDBOX_LIMITS.startingMs)
      .thenIgnored(/the transition has ended/);
  });
});

describe('pause, resume, snapshot', () => {
  test('go there and back, and idle time begins anew', () => {
    const g = given(...running, pause, paused, resume);
    g.when({ type: 'ReportResumed' }, T0 + 500_000).thenEvents({ type: 'SandboxResumed', idleDeadlineAt: at(T0 + 500_000 + IDLE_MS) });
    expect(given(...running, pause, paused).state).toMatchObject({ status: 'paused', idleDeadlineAt: null, transitionDeadlineAt: null });
  });

  test('are legal from where they make sense only', () => {
    given(create)
      .when(pause, T0 + 1)
      .thenRejected('INVALID_STATE', /starting/);
    given(create)
      .when(resume, T0 + 1)
      .thenRejected('INVALID_STATE', /starting/);
    given(create)
      .when(snapshot, T0 + 1)
      .thenRejected('INVALID_STATE', /starting/);
    given(...running, pause)
      .when(pause, T0 + 9_000)
      .thenIgnored(/already pausing/);
    given(...running)
      .when(resume, T0 + 9_000)
      .thenIgnored(/already running/);
    given(...running, stop)
      .when(pause, T0 + 9_000)
      .thenRejected('INVALID_STATE', /stopping/);
    given(...running, stop, destroyed)
      .when(pause, T0 + 9_000)
      .thenRejected('SANDBOX_ENDED', /create a new sandbox/);
  });

  test('what cannot be done leads back', () => {
    const failedStep: SandboxCommand = { type: 'ReportTransitionFailed', error: notSupported };
    expect(given(...running, pause, failedStep).state).toMatchObject({ status: 'running', failure: null, transitionDeadlineAt: null });
    expect(given(...running, pause, paused, resume, failedStep).state).toMatchObject({ status: 'paused' });
    expect(given(...running, snapshot, failedStep).state).toMatchObject({ status: 'running', snapshotId: null, returnTo: null, snapshots: [] });
    expect(given(...running, pause, paused, snapshot, failedStep).state).toMatchObject({ status: 'paused', snapshotId: null });
    given(...running, pause)
      .when(deadline('transition'), T0 + 900_000)
      .thenEvents({ type: 'SandboxTransitionFailed', error: { code: 'DEADLINE_EXCEEDED', outcome: 'unknown' } as never });
  });

  test('a snapshot returns to where it began and is made once per id', () => {
    const made: SandboxCommand = snapshotted('a');
    expect(given(...running, snapshot, made).state).toMatchObject({
      status: 'running',
      snapshots: [{ id: 's1', layer: `sha256:${'a'.repeat(64)}` }],
      snapshotId: 's1',
    });
    expect(given(...running, pause, paused, snapshot, made).state).toMatchObject({ status: 'paused' });
    given(...running, snapshot)
      .when(snapshot, T0 + 9_000)
      .thenIgnored(/being made/);
    given(...running, snapshot, made)
      .when(snapshot, T0 + 9_000)
      .thenIgnored(/has been made/);
    given(...running, snapshot)
      .when(snapshotOf('s2'), T0 + 9_000)
      .thenRejected('INVALID_STATE', /snapshotting/);
  });

  test('a sandbox keeps a bounded number of snapshots', () => {
    const rounds = Array.from({ length: SANDBOX_LIMITS.snapshots }, (_, i): SandboxCommand[] => [snapshotOf(`s${i}`), snapshotted(String(i % 10))]);
    given(...running, ...rounds.flat())
      .when(snapshotOf('more'), T0 + 900_000)
      .thenRejected('LIMIT_OUT_OF_RANGE', /snapshots/);
  });
});

describe('lives', () => {
  const startedAt = T0 + 1_000;

  test('the total life ends it from every state but stopping', () => {
    given(...running)
      .when(deadline('total'), T0 + TOTAL_MS)
      .thenEvents({ type: 'SandboxStopping', reason: 'total_life', error: null });
    given(...running)
      .when(deadline('total'), T0 + TOTAL_MS - 1)
      .thenIgnored(/extended/);
    given(create)
      .when(deadline('total'), T0 + TOTAL_MS)
      .thenEvents({ type: 'SandboxStopping', reason: 'total_life' });
    given(...running, stop)
      .when(deadline('total'), T0 + TOTAL_MS)
      .thenIgnored(/already stopping/);
  });

  test('idle ends it only when nothing newer happened', () => {
    const dueAt = startedAt + IDLE_MS;
    given(...running)
      .when(deadline('idle', 0), dueAt)
      .thenEvents({ type: 'SandboxStopping', reason: 'idle' });
    given(...running)
      .when(deadline('idle', 0), dueAt - 1)
      .thenIgnored(/activity/);
    given(...running)
      .when(deadline('idle', 0, startedAt + 10_000), dueAt)
      .thenIgnored(/activity/);
    given(...running)
      .when(deadline('idle', 0, startedAt + 10_000), dueAt + 10_000)
      .thenEvents({ type: 'SandboxStopping', reason: 'idle' });
    given(...running)
      .when(deadline('idle', 1), dueAt)
      .thenIgnored(/lives have changed/);
    given(...running, pause, paused)
      .when(deadline('idle', 0), dueAt * 2)
      .thenIgnored(/while paused/);
  });

  test('the running life counts while it runs, and anew after a pause', () => {
    const dueAt = startedAt + RUNNING_MS;
    given(...running)
      .when(deadline('running'), dueAt)
      .thenEvents({ type: 'SandboxStopping', reason: 'running_life', error: null });
    given(...running)
      .when(deadline('running'), dueAt - 1)
      .thenIgnored(/extended/);
    given(...running, { type: 'ExtendLives', runningMs: ms(2 * RUNNING_MS) })
      .when(deadline('running', 0), dueAt)
      .thenIgnored(/extended/);
    given(...running, pause, paused)
      .when(deadline('running'), 2 * dueAt)
      .thenIgnored(/while paused/);
    expect(given(...running, pause, paused, resume, { type: 'ReportResumed' }).state?.runningDeadlineAt).toBe(T0 + 5_000 + RUNNING_MS);
    expect(given(...running, { type: 'ExtendLives', runningMs: null }).state).toMatchObject({ livesVersion: 1, runningDeadlineAt: null });
    given(create)
      .when({ type: 'ExtendLives', runningMs: ms(5_000) }, T0 + 1)
      .thenEvents({ type: 'SandboxLivesExtended', runningMs: 5_000, runningDeadlineAt: null });
  });

  test('want of activity pauses it, and goes on counting towards its end', () => {
    const dueAt = startedAt + IDLE_PAUSE_MS;
    const pausing = { type: 'SandboxPausing', reason: 'idle' } as const;
    given(...running)
      .when(deadline('idlePause'), dueAt)
      .thenEvents({ ...pausing, idleDeadlineAt: at(startedAt + IDLE_MS) });
    given(...running)
      .when(deadline('idlePause', 0, startedAt + 5_000), dueAt + 5_000)
      .thenEvents({ ...pausing, idleDeadlineAt: at(startedAt + 5_000 + IDLE_MS) });
    given(...running)
      .when(deadline('idlePause'), dueAt - 1)
      .thenIgnored(/activity/);
    given(...running)
      .when(deadline('idlePause', 0, startedAt + 1), dueAt)
      .thenIgnored(/activity/);
    given(...running)
      .when(deadline('idlePause', 1), dueAt)
      .thenIgnored(/lives have changed/);
    given(...running, { type: 'ExtendLives', idlePauseMs: null })
      .when(deadline('idlePause', 1), dueAt)
      .thenIgnored(/not to be paused/);
    given(...running, pause)
      .when(deadline('idlePause'), dueAt)
      .thenIgnored(/while|paused/);
  });

  describe('paused for want of activity', () => {
    const idlePaused = [
      ...running,
      [deadline('idlePause'), IDLE_PAUSE_MS + 1_000],
      [{ type: 'ReportPaused', memoryGivenBackMiB: 40 }, IDLE_PAUSE_MS + 1_010],
    ] as const;

    test('it ends when its idle life is over', () => {
      const g = given(...idlePaused);
      expect(g.state).toMatchObject({ status: 'paused', pauseReason: 'idle', memoryGivenBackMiB: 40, idleDeadlineAt: startedAt + IDLE_MS });
      g.when(deadline('idle'), startedAt + IDLE_MS).thenEvents({ type: 'SandboxStopping', reason: 'idle' });
      g.when(deadline('idle'), startedAt + IDLE_MS - 1).thenIgnored(/activity/);
    });

    test('new lives count from now, and the running life not at all', () => {
      const extended = given(...idlePaused, [{ type: 'ExtendLives', idleMs: ms(2 * IDLE_MS), runningMs: ms(5_000), idlePauseMs: ms(9_000) }, 30_000]);
      expect(extended.state).toMatchObject({ idleDeadlineAt: T0 + 30_000 + 2 * IDLE_MS, runningDeadlineAt: null, idlePauseDeadlineAt: null });
    });

    test('after it was resumed everything counts anew, and nothing is said of a pause', () => {
      const resumed = given(...idlePaused, [resume, 40_000], [{ type: 'ReportResumed' }, 40_001]);
      expect(resumed.state).toMatchObject({
        status: 'running',
        pauseReason: null,
        memoryGivenBackMiB: null,
        idleDeadlineAt: T0 + 40_001 + IDLE_MS,
        idlePauseDeadlineAt: T0 + 40_001 + IDLE_PAUSE_MS,
      });
    });

    test('a pause that could not be does not come again at once', () => {
      const failed: SandboxCommand = { type: 'ReportTransitionFailed', error: wireError('INTERNAL', 'no') };
      const back = given(...running, [deadline('idlePause'), IDLE_PAUSE_MS + 1_000], [failed, IDLE_PAUSE_MS + 2_000]);
      expect(back.state).toMatchObject({ status: 'running', pauseReason: null, idlePauseDeadlineAt: T0 + 2 * IDLE_PAUSE_MS + 2_000 });
    });
  });

  test('an agent that ended its sandbox because the total life was over is no failure', () => {
    given(...running)
      .when(exited, T0 + TOTAL_MS - 1)
      .thenEvents({ type: 'SandboxStopping', reason: 'failed' });
    given(...running)
      .when(exited, T0 + TOTAL_MS)
      .thenEvents({ type: 'SandboxStopping', reason: 'total_life', error: null });
  });

  test('a long snapshot does not use up the idle life', () => {
    const made: SandboxCommand = snapshotted('a');
    expect(given(...running, snapshot, made).state?.idleDeadlineAt).toBe(T0 + 3_000 + IDLE_MS);
  });

  test('new lives count from now and raise the version', () => {
    const g = given(...running, { type: 'ExtendLives', totalMs: ms(10 * TOTAL_MS), idleMs: ms(2 * IDLE_MS) });
    expect(g.state).toMatchObject({ livesVersion: 1, totalDeadlineAt: T0 + 2_000 + 10 * TOTAL_MS, idleDeadlineAt: T0 + 2_000 + 2 * IDLE_MS });
    expect(g.state?.spec.lives).toEqual({ totalMs: TOTAL_MS, runningMs: RUNNING_MS, idleMs: 2 * IDLE_MS, idlePauseMs: IDLE_PAUSE_MS });
    expect(given(...running, { type: 'ExtendLives', idleMs: null }).state).toMatchObject({ livesVersion: 1, idleDeadlineAt: null });
    expect(given(create, { type: 'ExtendLives', idleMs: ms(5_000) }, started).state).toMatchObject({ idleDeadlineAt: T0 + 2_000 + 5_000 });
  });

  test('outside the range are refused by name', () => {
    const g = given(...running);
    g.when({ type: 'ExtendLives' }, T0).thenRejected('INVALID_ARGUMENT', /none of/);
    g.when({ type: 'ExtendLives', totalMs: ms(0) }, T0).thenRejected('INVALID_ARGUMENT', /totalMs.*use stop/);
    g.when({ type: 'ExtendLives', idleMs: ms(SPEC_LIMITS.lifeMsMax + 1) }, T0).thenRejected('LIMIT_OUT_OF_RANGE', /idleMs/);
    given(...running, stop)
      .when({ type: 'ExtendLives', totalMs: ms(5_000) }, T0 + 9_000)
      .thenRejected('INVALID_STATE');
    given(...running, stop, destroyed)
      .when({ type: 'ExtendLives', totalMs: ms(5_000) }, T0 + 9_000)
      .thenRejected('SANDBOX_ENDED');
  });
});

describe('effects follow from the state alone', () => {
  const effectsOf = (...commands: SandboxCommand[]) => sandboxDefinition.pendingEffects(stateOf(given(...commands)));

  test('each state calls for its own work', () => {
    expect(effectsOf({ ...create, layersLocal: false })).toMatchObject([{ type: 'ensurePrepared', layers: spec.layers }]);
    expect(effectsOf(create)).toMatchObject([{ key: 'launch', type: 'ensureLaunched', slot: 7, generation: 3, spec }]);
    expect(effectsOf(...running)).toMatchObject([{ type: 'ensureAttached', pid: 4_242, frozen: false }]);
    expect(effectsOf(...running, pause)).toMatchObject([{ type: 'ensureAttached', frozen: null }, { type: 'ensurePaused' }]);
    expect(effectsOf(...running, pause, paused)).toMatchObject([{ type: 'ensureAttached', frozen: true }]);
    expect(effectsOf(...running, pause, paused, resume)).toMatchObject([{ type: 'ensureAttached' }, { type: 'ensureResumed' }]);
    expect(effectsOf(...running, snapshot)).toMatchObject([{ type: 'ensureAttached' }, { type: 'ensureSnapshot', snapshotId: 's1' }]);
    expect(effectsOf(...running, stop)).toMatchObject([{ type: 'ensureDestroyed' }]);
    expect(effectsOf(...running, stop, destroyed)).toEqual([]);
  });

  test('a second round of the same work has another key', () => {
    const [first] = effectsOf(...running, pause).slice(1);
    const [second] = effectsOf(...running, pause, paused, resume, { type: 'ReportResumed' }, pause).slice(1);
    expect(first?.key).not.toBe(second?.key);
  });
});
