import { wireError } from '#bus/errors.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { Step } from '../../kernel/testing/scenario.ts';
import { shelf, type Story } from '../../kernel/testing/story.ts';
import { SANDBOX_LIMITS } from '../limits.ts';
import { sandboxDefinition } from '../sandbox.definition.ts';
import {
  address,
  at,
  create,
  deadline,
  destroyed,
  exited,
  failed,
  HELD_MS,
  IDLE_MS,
  IDLE_PAUSE_MS,
  ms,
  remove,
  RUNNING_MS,
  snapshotOf,
  snapshotted,
  spec,
  started,
  stop,
  T0,
  TOTAL_MS,
} from './samples.ts';

/** Commands a second apart; a pair gives the delay after T0 itself. */
const story = (name: string, ...commands: (SandboxCommand | [SandboxCommand, number])[]): Story<SandboxCommand> => ({
  name,
  steps: commands.map(
    (entry, i): Step<SandboxCommand> => (Array.isArray(entry) ? { command: entry[0], at: T0 + entry[1] } : { command: entry, at: T0 + i * 1_000 }),
  ),
});
const pause: SandboxCommand = { type: 'PauseSandbox' };
const resume: SandboxCommand = { type: 'ResumeSandbox' };
const snapshot = snapshotOf('after-setup');
const notYet: SandboxCommand = { type: 'ReportTransitionFailed', error: wireError('NOT_SUPPORTED', 'this backend cannot do it yet') };

export const sandboxShelf = shelf('sandbox', sandboxDefinition, address, [
  story('ordinary', create, create, started, stop, stop, destroyed),
  story('fetched-layers', { ...create, layersLocal: false }, { type: 'ReportPrepared' }, started, remove, remove, destroyed, remove),
  story('failed-launch', create, failed, destroyed),
  story('launch-deadline', create, [deadline('transition'), SANDBOX_LIMITS.startingMs], [destroyed, SANDBOX_LIMITS.startingMs + 1]),
  story('stopped-while-starting', create, stop, started, [deadline('transition'), 1_000 + SANDBOX_LIMITS.stoppingMs], [destroyed, 60_000], [remove, 61_000]),
  story('held-and-started', { ...create, heldUntil: at(T0 + HELD_MS) }, { type: 'StartHeld', layersLocal: true }, started, stop, destroyed),
  story('held-and-given-back', { ...create, heldUntil: at(T0 + HELD_MS) }, stop, destroyed, { type: 'StartHeld', layersLocal: true }),
  story('held-for-too-long', { ...create, heldUntil: at(T0 + HELD_MS) }, [deadline('transition'), HELD_MS], [destroyed, HELD_MS + 5]),
  story('died', create, started, exited, destroyed),
  story(
    'idle',
    create,
    started,
    [deadline('idle', 0, T0 + 30_000), 1_000 + IDLE_MS],
    [deadline('idle', 0, T0 + 30_000), 30_000 + IDLE_MS],
    [destroyed, 31_000 + IDLE_MS],
  ),
  story(
    'total-life',
    create,
    started,
    { type: 'ExtendLives', totalMs: ms(2 * TOTAL_MS), idleMs: null },
    [deadline('total', 0), TOTAL_MS],
    [deadline('total', 1), 3 * TOTAL_MS],
    [destroyed, 3 * TOTAL_MS + 5],
  ),
  story(
    'running-life',
    create,
    started,
    { type: 'ExtendLives', runningMs: ms(2 * RUNNING_MS), idleMs: null },
    [deadline('running', 0), 1_000 + RUNNING_MS],
    [pause, 1_100 + RUNNING_MS],
    [{ type: 'ReportPaused' }, 1_200 + RUNNING_MS],
    [deadline('running', 1), 3 * RUNNING_MS],
    [resume, 3 * RUNNING_MS + 5],
    [{ type: 'ReportResumed' }, 3 * RUNNING_MS + 10],
    [deadline('running', 1), 3 * RUNNING_MS + 10],
    [exited, TOTAL_MS],
    [destroyed, TOTAL_MS + 5],
  ),
  story(
    'paused-and-snapshotted',
    create,
    started,
    pause,
    { type: 'ReportPaused' },
    snapshot,
    snapshotted('5'),
    resume,
    { type: 'ReportResumed' },
    snapshot,
    pause,
    notYet,
    stop,
    destroyed,
  ),
  story(
    'paused-for-want-of-activity',
    create,
    started,
    [deadline('idlePause', 0, T0 + 5_000), 1_000 + IDLE_PAUSE_MS],
    [deadline('idlePause', 0, T0 + 5_000), 5_000 + IDLE_PAUSE_MS],
    [{ type: 'ReportPaused', memoryGivenBackMiB: 93 }, 5_100 + IDLE_PAUSE_MS],
    [{ type: 'ExtendLives', idlePauseMs: ms(2 * IDLE_PAUSE_MS) }, 30_000],
    [resume, 31_000],
    [{ type: 'ReportResumed' }, 31_005],
    [deadline('idlePause', 1, T0 + 31_005), 31_005 + 2 * IDLE_PAUSE_MS],
    [{ type: 'ReportPaused' }, 31_100 + 2 * IDLE_PAUSE_MS],
    [deadline('idle', 1, T0 + 31_005), 31_005 + IDLE_MS],
    [destroyed, 31_100 + IDLE_MS],
  ),
  story(
    'not-supported',
    { ...create, spec: { ...spec, lives: { ...spec.lives, idleMs: null } } },
    started,
    snapshot,
    notYet,
    pause,
    [deadline('transition'), 900_000],
    [stop, 901_000],
    [destroyed, 902_000],
  ),
]);
