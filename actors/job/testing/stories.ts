import type { JobCommand } from '#bus/job/schema.ts';
import { shelf, type Story } from '../../kernel/testing/story.ts';
import { jobDefinition } from '../job.definition.ts';
import { address, claim, create, extend, GRACE_MS, LEASE_MS, LIFE_MS, members, passed, pause, release, renew, resume, stop, T0 } from './samples.ts';

const story = (name: string, ...steps: [JobCommand, number][]): Story<JobCommand> => ({
  name,
  steps: steps.map(([command, delayMs]) => ({ command, at: T0 + delayMs })),
});
const LOST = LEASE_MS + GRACE_MS;

export const jobShelf = shelf('job', jobDefinition, address, [
  story(
    'preempted-and-back',
    [create(), 0],
    [create(), 1],
    [renew('a', 1), 30_000],
    [passed('owner', 1), LOST],
    [passed('owner', 1), LOST + 30_000],
    [members('paused', 1), LOST + 31_000],
    [renew('a', 1), LOST + 32_000],
    [claim('b', { resume: true }), LOST + 40_000],
    [members('running', 2), LOST + 41_000],
    [extend(2 * LIFE_MS), LOST + 42_000],
    [release('b', 2), LOST + 43_000],
  ),
  story('two-owners', [create(), 0], [claim('b'), 10], [claim('b', { takeover: true }), 20], [renew('a', 1), 30], [renew('b', 2), 40]),
  story(
    'paused-and-stopped',
    [create(null), 0],
    [pause, 10],
    [resume, 20],
    [members('paused', 1), 30],
    [stop, 40],
    [members('ended', 3, 2), 50],
    [members('ended', 4), 60],
    [claim('c'), 70],
  ),
  story(
    'owner-lost-stops',
    [create('a', { onOwnerLost: 'stop' }), 0],
    [passed('owner', 1), LOST],
    [passed('transition', 1), LOST + 700_000],
    [members('ended', 2), LOST + 700_001],
  ),
  story(
    'over-at-its-deadline',
    [create('a', { onOwnerLost: 'keep' }), 0],
    [passed('owner', 1), LOST],
    [passed('life', 0), LIFE_MS],
    [members('ended', 1), LIFE_MS + 5],
  ),
]);
