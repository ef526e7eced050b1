import { describe, expect, test } from 'vitest';
import type { JobCommand, JobState } from '#bus/job/schema.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import { jobDefinition } from './job.definition.ts';
import { address, claim, create, extend, GRACE_MS, LEASE_MS, LIFE_MS, members, passed, pause, release, renew, resume, stop, T0 } from './testing/samples.ts';

/** Commands at given times, all of which must be accepted. */
const given = (...steps: [JobCommand, number][]) =>
  givenActor(
    jobDefinition,
    address,
    historyOf(
      jobDefinition,
      address,
      steps.map(([command, delayMs]) => ({ command, at: T0 + delayMs })),
    ),
  );
const LOST = LEASE_MS + GRACE_MS;

describe('creation', () => {
  test('with a holder gives it the lease in the same commit', () =>
    given()
      .when(create(), T0)
      .thenEvents(
        { type: 'JobCreated', deadlineAt: (T0 + LIFE_MS) as never },
        { type: 'JobClaimed', holder: 'a', epoch: 1, leaseUntil: (T0 + LEASE_MS) as never },
      ));

  test('again is the same job; another body is a conflict; a key is spent in the end', () => {
    given([create(), 0])
      .when(create(), T0 + 1)
      .thenIgnored(/created already/);
    given([create(), 0])
      .when(create('a', {}, 'other'), T0 + 1)
      .thenRejected('KEY_CONFLICT');
    given([create(), 0])
      .when(create(), T0 + KEY_LIMITS.requestKeyLifetimeMs)
      .thenRejected('KEY_EXPIRED');
  });

  test('is what everything else needs', () => given().when(claim('a'), T0).thenRejected('JOB_NOT_FOUND'));
});

describe('two owners', () => {
  test('one must wait, or take over and fence the other', () => {
    given([create(), 0])
      .when(claim('b'), T0 + 10)
      .thenRejected('JOB_OWNED', /held by a/);
    const taken = given([create(), 0], [claim('b', { takeover: true }), 20]);
    taken.when(renew('a', 1), T0 + 30).thenRejected('LEASE_LOST', /held by b/);
    taken.when(release('a', 1), T0 + 30).thenIgnored(/no lease/);
    taken.when(renew('b', 2), T0 + 30).thenEvents({ type: 'JobLeaseRenewed' });
  });

  test('a lease that is over is free for anybody, and is not renewed', () => {
    given([create(), 0])
      .when(renew('a', 1), T0 + LEASE_MS)
      .thenRejected('LEASE_LOST', /over before it was renewed/);
    given([create(), 0])
      .when(claim('b'), T0 + LEASE_MS)
      .thenEvents({ type: 'JobClaimed', holder: 'b', epoch: 2 });
  });
});

describe('when the owner is lost', () => {
  test('the policy acts once, after the grace time', () => {
    given([create(), 0])
      .when(passed('owner', 1), T0 + LOST - 1)
      .thenIgnored(/renewed/);
    given([create(), 0])
      .when(passed('owner', 1), T0 + LOST)
      .thenEvents({ type: 'JobOwnerLost', epoch: 1 }, { type: 'JobPausing', goalVersion: 1 });
    given([create('a', { onOwnerLost: 'stop' }), 0])
      .when(passed('owner', 1), T0 + LOST)
      .thenEvents({ type: 'JobOwnerLost' }, { type: 'JobEnding', reason: 'owner_lost' });
    given([create('a', { onOwnerLost: 'keep' }), 0])
      .when(passed('owner', 1), T0 + LOST)
      .thenEvents({ type: 'JobOwnerLost' });
    given([create(), 0], [passed('owner', 1), LOST])
      .when(passed('owner', 1), T0 + LOST)
      .thenIgnored(/another owner/);
  });

  test('the next one claims it, and wakes it in the same commit', () =>
    given([create(), 0], [passed('owner', 1), LOST], [members('paused', 1), LOST + 5])
      .when(claim('b', { resume: true }), T0 + LOST + 10)
      .thenEvents({ type: 'JobClaimed', epoch: 2 }, { type: 'JobResuming', goalVersion: 2 }));

  test('one that comes back before the grace time is over keeps everything running', () =>
    given([create(), 0], [claim('a'), LEASE_MS + 1])
      .when(passed('owner', 1), T0 + LOST)
      .thenIgnored(/another owner/));
});

describe('goals of the members', () => {
  test('a new goal supersedes the old one’s report', () => {
    given([create(), 0], [pause, 10], [resume, 20])
      .when(members('paused', 1), T0 + 30)
      .thenIgnored(/another goal/);
    given([create(), 0], [pause, 10])
      .when(members('paused', 1), T0 + 30)
      .thenEvents({ type: 'JobPaused', counts: { reached: 3, failed: 1, left: 0 } });
  });

  test('a pause that is not finished in time is said to be over; a stop goes on', () => {
    given([create(), 0], [pause, 10])
      .when(passed('transition', 1), T0 + 700_000)
      .thenEvents({ type: 'JobPaused', counts: { reached: 0, failed: 0, left: 0 } });
    given([create(), 0], [stop, 10])
      .when(passed('transition', 1), T0 + 700_000)
      .thenEvents({ type: 'JobEndRetried', goalVersion: 2 });
    given([create(), 0], [stop, 10])
      .when(members('ended', 1, 2), T0 + 20)
      .thenEvents({ type: 'JobEndRetried', goalVersion: 2 });
  });

  test('an ended job refuses everything but another stop', () => {
    const ended = given([create(), 0], [stop, 10], [members('ended', 1), 20]);
    expect(ended.state).toMatchObject({ status: 'ended', owner: null, endReason: 'requested', endedAt: T0 + 20 } satisfies Partial<
      Record<keyof JobState, unknown>
    >);
    ended.when(stop, T0 + 30).thenIgnored(/already ended/);
    for (const command of [claim('b'), renew('a', 1), pause, resume, extend(LIFE_MS)])
      ended.when(command, T0 + 30).thenRejected('JOB_ENDED', /create a new one/);
  });
});

describe('life', () => {
  test('ends the job at its deadline, unless it was extended', () => {
    given([create(), 0])
      .when(passed('life', 0), T0 + LIFE_MS)
      .thenEvents({ type: 'JobEnding', reason: 'deadline' });
    given([create(), 0], [extend(2 * LIFE_MS), 10])
      .when(passed('life', 0), T0 + LIFE_MS)
      .thenIgnored(/longer/);
    given([create(), 0])
      .when(extend(1), T0 + 10)
      .thenRejected('LIMIT_OUT_OF_RANGE', /not between/);
  });
});
