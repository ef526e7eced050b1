import { describe, expect, test } from 'vitest';
import type { RolloutCommand, RolloutState } from '#bus/rollout/schema.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { ROLLOUT_ACTOR_LIMITS } from './limits.ts';
import { rolloutDefinition } from './rollout.definition.ts';
import {
  address,
  answer,
  asked,
  boxNamed,
  cleaned,
  delivered,
  finished,
  LIFE_MS,
  passed,
  ready,
  replaced,
  start,
  step,
  stop,
  T0,
  workerEnded,
} from './testing/samples.ts';

const given = (...commands: RolloutCommand[]) =>
  givenActor(
    rolloutDefinition,
    address,
    historyOf(
      rolloutDefinition,
      address,
      commands.map((command, i) => ({ command, at: T0 + i })),
    ),
  );
const stateOf = (g: ReturnType<typeof given>) => g.state as RolloutState;
const AT = T0 + 100;

describe('start', () => {
  test('lives no longer than its job', () => {
    given()
      .when(start('b0d1', T0 + 5), T0)
      .thenEvents({ type: 'RolloutStarted', deadlineAt: (T0 + 5) as never });
    given()
      .when(start(), T0)
      .thenEvents({ type: 'RolloutStarted', deadlineAt: (T0 + LIFE_MS) as never });
    given()
      .when(start('b0d1', T0), T0)
      .thenRejected('JOB_ENDED', /extend it/);
  });

  test('again is the same rollout; another body is a conflict', () => {
    given(start())
      .when(start(), AT)
      .thenIgnored(/started already/);
    given(start()).when(start('other'), AT).thenRejected('KEY_CONFLICT');
  });
});

describe('turns', () => {
  const open = () => given(start(), ready(0), asked(0, 0, [step(0)]));

  test('are asked with the steps before them, in one commit', () =>
    given(start(), ready(0))
      .when(asked(0, 0, [step(0)]), AT)
      .thenEvents({ type: 'StepsRecorded' }, { type: 'TurnAsked', turn: 0 }));

  test('an answer twice is taken once; another answer is refused', () => {
    const answered = given(start(), ready(0), asked(0, 0), answer(0));
    answered.when(answer(0), AT).thenIgnored(/has this answer/);
    answered.when(answer(0, 'other'), AT).thenRejected('TURN_ANSWERED', /stays/);
    const later = given(start(), ready(0), asked(0, 0), answer(0), delivered(0, 0), asked(0, 1));
    later.when(answer(0), AT).thenIgnored(/has this answer/);
    later.when(answer(0, 'other'), AT).thenRejected('TURN_ANSWERED');
    later.when(answer(1), AT).thenEvents({ type: 'TurnAnswered', turn: 1 });
  });

  test('an answer out of order or to nothing is refused and harms nothing', () => {
    open()
      .when(answer(1), AT)
      .thenRejected('TURN_OUT_OF_ORDER', /turn 0 is open/);
    given(start(), ready(0))
      .when(answer(0), AT)
      .thenRejected('TURN_OUT_OF_ORDER', /ask turn 0 next/);
    given(start(), ready(0)).when(asked(0, 1), AT).thenRejected('TURN_OUT_OF_ORDER');
  });

  test('a trainer that was preempted cannot answer any more', () =>
    open()
      .when(answer(0, 'a0', 1, 2), AT)
      .thenRejected('LEASE_LOST', /claim the job again/));

  test('a driver that took over may ask again; a worker that was made anew may ask otherwise', () => {
    open()
      .when(asked(0, 0, [step(0)]), AT)
      .thenIgnored(/asked already/);
    open()
      .when(asked(0, 0, [], 'changed'), AT)
      .thenEvents({ type: 'TurnAsked', turn: 0, requestHash: 'changed' });
  });
});

describe('what is lost', () => {
  test('a lost worker is made anew and has its answers on record', () => {
    const restarted = given(start(), ready(0), asked(0, 0), answer(0), workerEnded(0, true));
    expect(stateOf(restarted)).toMatchObject({ status: 'preparing', attempt: 1, turns: 1, open: null, served: { stdoutBytes: 0 }, worker: null });
    restarted.when(ready(0), AT).thenIgnored(/not the living one/);
    restarted.when(delivered(0, 0), AT).thenIgnored(/not the living one/);
    restarted.when(ready(1), AT).thenEvents({ type: 'RolloutRunning', attempt: 1 });
  });

  test('too many times is no chance any more, and a crash is the worker’s own', () => {
    const often = Array.from({ length: ROLLOUT_ACTOR_LIMITS.attempts - 1 }, (_, i) => [ready(i), workerEnded(i, true)]).flat();
    given(start(), ...often, ready(ROLLOUT_ACTOR_LIMITS.attempts - 1))
      .when(workerEnded(ROLLOUT_ACTOR_LIMITS.attempts - 1, true), AT)
      .thenEvents({ type: 'RolloutEnding', outcome: 'failed', error: { fault: 'infra' } as never });
    given(start(), ready(0))
      .when(workerEnded(0, false), AT)
      .thenEvents({ type: 'RolloutEnding', outcome: 'failed', error: { fault: 'environment' } as never });
  });

  test('an agent sandbox is replaced once', () => {
    const g = given(start(), ready(0), replaced('agent-0', 'agent-1'));
    expect(stateOf(g).sandboxes).toEqual({ agent: boxNamed('agent-1') });
    g.when(replaced('agent-0', 'agent-2'), AT).thenIgnored(/replaced already/);
  });
});

describe('the end', () => {
  test('a result is kept with its last steps; afterwards the rollout is deaf', () => {
    given(start(), ready(0))
      .when(finished(0, [step(0)]), AT)
      .thenEvents({ type: 'StepsRecorded' }, { type: 'RolloutEnding', outcome: 'finished', reward: 1, exitCode: 0 });
    const ended = given(start(), ready(0), finished(0), cleaned);
    ended.when(stop, AT).thenIgnored(/has ended/);
    ended.when(answer(0), AT).thenRejected('ROLLOUT_ENDED', /finished/);
    expect(stateOf(ended)).toMatchObject({ status: 'ended', outcome: 'finished', reward: 1, result: { passed: true } });
  });

  test('its life ends it, and a clean-up that takes too long goes on', () => {
    given(start(), ready(0))
      .when(passed('life', 0), T0 + LIFE_MS)
      .thenEvents({ type: 'RolloutEnding', outcome: 'expired', error: { code: 'EXPIRED' } as never });
    given(start(), stop)
      .when(passed('transition', 1), T0 + ROLLOUT_ACTOR_LIMITS.endingMs + 1)
      .thenEvents({ type: 'RolloutEndRetried' });
    given(start())
      .when(passed('transition', 0), T0 + ROLLOUT_ACTOR_LIMITS.preparingMs)
      .thenEvents({ type: 'RolloutEnding', outcome: 'failed' });
  });
});
