/**
 * INV-ORPHAN, the sandbox's part: once nobody commands anything any more, deadlines alone bring it to its end, from every state it can
 * be in, by the total life that was granted last. The node may be as silent as it likes: only that nothing is left of the sandbox is its to say.
 */
import { expect, test } from 'vitest';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { type DeadlineKind, ENDED_STATUSES, SANDBOX_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { type Deadline, fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { sandboxDefinition } from './sandbox.definition.ts';
import { address, at, COMMANDS, DELAYS_MS, destroyed, IDLE_MS, shapeOf, T0, TOTAL_MS } from './testing/samples.ts';

const { decide, deadlines, pendingEffects } = sandboxDefinition;
/** A pause that a silent node never finishes is given up and begun again until the total life is over; anything more goes round in circles. */
const STEPS_MAX = 1_000;

const apply = (state: SandboxState, command: SandboxCommand, now: number): SandboxState => {
  const decision = decide(state, command, { address, at: at(now) });
  return decision.kind === 'accept' ? (fold<SandboxState, SandboxEvent>(sandboxDefinition, decision.events, state) as SandboxState) : state;
};

/** When a timer is really due: activity puts off what waits for a want of it, and nothing puts off the total life. */
const dueAt = ({ kind, at: due }: Deadline, { spec: { lives } }: SandboxState, activityAt: number): number => {
  const life = kind === 'idle' ? lives.idleMs : kind === 'idlePause' ? lives.idlePauseMs : null;
  return life === null ? due : Math.max(due, activityAt + life);
};

/** Each deadline when it is due, the nearest first, and nothing else, until it is on its way out; says when that was. */
const leftAlone = (from: SandboxState, since: number, activityAt: number): { readonly state: SandboxState; readonly now: number } => {
  let [state, now] = [from, since];
  for (let steps = 0; state.status !== 'stopping' && !ENDED_STATUSES.has(state.status); steps += 1) {
    if (steps >= STEPS_MAX) throw new Error(`${from.status} goes on for ever`);
    const [next] = [...deadlines(state)].sort((a, b) => dueAt(a, state, activityAt) - dueAt(b, state, activityAt));
    if (!next) throw new Error(`${state.status} has no deadline`);
    now = Math.max(now, dueAt(next, state, activityAt));
    state = apply(state, { type: 'DeadlinePassed', kind: next.kind as DeadlineKind, version: next.version, activityAt: at(activityAt) }, now);
  }
  return { state, now };
};

const reached = reachableStates({ definition: sandboxDefinition, address, commands: COMMANDS, delaysMs: DELAYS_MS, startAt: T0, shapeOf });
/** The newest activity, from the moment on in which nobody commands any more. */
const ACTIVITY_MS = [-TOTAL_MS, IDLE_MS, 20 * TOTAL_MS];

test('left alone in any state, it is on its way out when its total life is over, and ended as soon as its node has nothing of it', () => {
  expect(new Set(reached.flatMap(({ state }) => state?.status ?? []))).toEqual(new Set(SANDBOX_STATUSES));
  for (const { state, at: since } of reached)
    for (const activityMs of state ? ACTIVITY_MS : []) {
      if (!state) continue;
      const { state: out, now: outAt } = leftAlone(state, since, since + activityMs);
      if (outAt > Math.max(since, state.totalDeadlineAt)) throw new Error(`${state.status} outlives its total life by ${outAt - state.totalDeadlineAt} ms`);
      if (ENDED_STATUSES.has(out.status)) continue;
      // However often the node is late, it is asked again, and nothing brings the sandbox back.
      let [again, laterAt] = [out, outAt];
      for (let round = 0; round < 3; round += 1) {
        expect(pendingEffects(again)[0]?.type).toBe('ensureDestroyed');
        laterAt = deadlines(again).find(({ kind }) => kind === 'transition')?.at ?? Number.NaN;
        again = apply(again, { type: 'DeadlinePassed', kind: 'transition', version: 0, activityAt: at(0) }, laterAt);
        expect(again.status).toBe('stopping');
      }
      expect(ENDED_STATUSES.has(apply(again, destroyed, laterAt + 1).status)).toBe(true);
    }
});
