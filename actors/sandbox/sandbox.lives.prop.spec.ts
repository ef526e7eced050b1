/**
 * INV-LIFE: a sandbox never ends of a life before that life was over, and is never paused for want of activity before its time, whatever timers
 * say and in whatever order they, pauses and new lives arrive; and a timer that fires when a life is over ends it.
 *
 * The oracle keeps what clients were granted, in absolute time, without looking into the state.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SPEC_LIMITS } from '#bus/limits.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { DeadlineKind, SandboxState, StopReason } from '#bus/sandbox/state.ts';
import { type Deadline, fold } from '../kernel/definition.ts';
import { sandboxDefinition } from './sandbox.definition.ts';
import { address, at, create, ms, started, T0 } from './testing/samples.ts';

const LEAST = SPEC_LIMITS.lifeMsMin;
const NEVER = Number.POSITIVE_INFINITY;
const life = fc.integer({ min: LEAST, max: 20 * LEAST }).map(ms);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), spanMs: fc.integer({ min: 0, max: 12 * LEAST }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('extend' as const),
      totalMs: maybe(life),
      runningMs: maybe(fc.option(life)),
      idleMs: maybe(fc.option(life)),
      idlePauseMs: maybe(fc.option(life)),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('timer' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('activity' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

type AskedLives = { readonly totalMs: number; readonly runningMs: number | null; readonly idleMs: number | null; readonly idlePauseMs: number | null };
const lives = fc.record({ totalMs: life, runningMs: fc.option(life), idleMs: fc.option(life), idlePauseMs: fc.option(life) });

class Run {
  now = T0;
  state: SandboxState | null = null;
  activityAt = 0;
  /** Every deadline that any state has held: timers of the past may still fire. */
  readonly armed: Deadline[] = [];
  readonly granted = { total: 0, running: NEVER, idleFloor: NEVER, idleMs: NEVER, pauseFloor: NEVER, pauseMs: NEVER };
  /** As the client sees it: what made the newest pause. */
  pausedFor: 'nothing' | 'activity' | 'request' = 'nothing';

  submit(command: SandboxCommand): boolean {
    const decision = sandboxDefinition.decide(this.state, command, { address, at: at(this.now) });
    if (decision.kind !== 'accept') return false;
    this.state = fold<SandboxState, SandboxEvent>(sandboxDefinition, decision.events, this.state);
    this.armed.push(...sandboxDefinition.deadlines(this.state as SandboxState));
    return true;
  }

  fire({ kind, version }: Pick<Deadline, 'kind' | 'version'>): boolean {
    return this.submit({ type: 'DeadlinePassed', kind: kind as DeadlineKind, version, activityAt: at(this.activityAt) });
  }

  begin(lives: AskedLives): void {
    this.submit({ ...create, spec: { ...create.spec, lives: lives as typeof create.spec.lives } });
    this.granted.total = T0 + lives.totalMs;
    this.submit(started);
    this.counted(lives);
  }

  /** Running and idle times count from now. */
  counted({ runningMs, idleMs, idlePauseMs }: Omit<AskedLives, 'totalMs'>): void {
    this.pausedFor = 'nothing';
    this.granted.running = runningMs === null ? NEVER : this.now + runningMs;
    this.granted.idleMs = idleMs ?? NEVER;
    this.granted.idleFloor = this.now + this.granted.idleMs;
    this.granted.pauseMs = idlePauseMs ?? NEVER;
    this.granted.pauseFloor = this.now + this.granted.pauseMs;
  }

  apply(s: Step): void {
    if (s.do === 'wait') this.now += s.spanMs;
    else if (s.do === 'activity') this.activityAt = this.now;
    else if (s.do === 'timer') this.timer(this.armed[s.which % this.armed.length] as Deadline);
    else if (s.do === 'extend') this.extend(s);
    else this.rest(s.do);
  }

  timer(deadline: Deadline): void {
    const floors = this.state;
    this.fire(deadline);
    if (this.state?.status !== 'pausing' || floors?.status === 'pausing') return;
    expect(this.now, 'paused for want of activity').toBeGreaterThanOrEqual(Math.max(this.granted.pauseFloor, this.activityAt + this.granted.pauseMs));
    this.submit({ type: 'ReportPaused', memoryGivenBackMiB: 1 });
    this.pausedFor = 'activity';
    this.granted.running = NEVER;
    // whoever asks now is told this; the Edge that knew of the activity may be gone later
    this.granted.idleFloor = Math.max(this.granted.idleFloor, this.activityAt + this.granted.idleMs);
  }

  extend({ totalMs, runningMs, idleMs, idlePauseMs }: Extract<Step, { do: 'extend' }>): void {
    const isRunning = this.state?.status === 'running';
    const isIdleCounted = isRunning || this.pausedFor === 'activity';
    const isAccepted = this.submit({
      type: 'ExtendLives',
      ...(totalMs === undefined ? {} : { totalMs }),
      ...(runningMs === undefined ? {} : { runningMs }),
      ...(idleMs === undefined ? {} : { idleMs }),
      ...(idlePauseMs === undefined ? {} : { idlePauseMs }),
    });
    if (!isAccepted) return;
    if (totalMs !== undefined) this.granted.total = this.now + totalMs;
    if (runningMs !== undefined) this.granted.running = runningMs === null || !isRunning ? NEVER : this.now + runningMs;
    if (idleMs !== undefined) {
      this.granted.idleMs = idleMs ?? NEVER;
      this.granted.idleFloor = isIdleCounted ? this.now + this.granted.idleMs : NEVER;
    }
    if (idlePauseMs !== undefined) {
      this.granted.pauseMs = idlePauseMs ?? NEVER;
      this.granted.pauseFloor = isRunning ? this.now + this.granted.pauseMs : NEVER;
    }
  }

  rest(verb: 'pause' | 'resume'): void {
    if (verb === 'pause' && this.submit({ type: 'PauseSandbox' })) {
      this.submit({ type: 'ReportPaused' });
      this.pausedFor = 'request';
      this.granted.running = NEVER;
      this.granted.idleFloor = NEVER;
    }
    if (verb === 'resume' && this.submit({ type: 'ResumeSandbox' })) {
      this.submit({ type: 'ReportResumed' });
      this.counted(this.state?.spec.lives as AskedLives);
    }
  }

  /** When the life that a stop names was over, as the client was told. */
  overAt(reason: StopReason | null): number {
    if (reason === 'total_life') return this.granted.total;
    if (reason === 'running_life') return this.granted.running;
    if (reason === 'idle') return Math.max(this.granted.idleFloor, this.activityAt + this.granted.idleMs);
    throw new Error(`nobody asked for ${reason}`);
  }
}

test('no order of timers, extensions, activity and pauses ends a sandbox before what was granted', () => {
  fc.assert(
    fc.property(lives, fc.array(step, { maxLength: 60, size: 'max' }), (asked, steps) => {
      const run = new Run();
      run.begin(asked);
      for (const s of steps) {
        run.apply(s);
        if (run.state?.status === 'stopping') {
          expect(run.now, `${run.state.stopReason} after ${s.do}`).toBeGreaterThanOrEqual(run.overAt(run.state.stopReason));
          return;
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('whatever was granted, the nearest current timer ends it when it is due', () => {
  fc.assert(
    fc.property(lives, fc.array(step, { maxLength: 30, size: 'max' }), (asked, steps) => {
      const run = new Run();
      run.begin(asked);
      for (const s of steps) if (run.state?.status !== 'stopping') run.apply(s);
      if (run.state?.status === 'stopping') return;
      const current = sandboxDefinition.deadlines(run.state as SandboxState);
      run.now = Math.max(run.now, run.granted.total, run.activityAt + 20 * LEAST);
      expect(current.some((deadline) => deadline.kind !== 'idlePause' && run.fire(deadline))).toBe(true);
      expect(run.state?.status).toBe('stopping');
    }),
    { numRuns: 500 },
  );
});

test('looking never shortens: later activity never brings the end forward', () => {
  fc.assert(
    fc.property(life, fc.nat(20 * LEAST), fc.nat(20 * LEAST), fc.nat(60 * LEAST), (idleMs, first, more, spanMs) => {
      const endsWith = (activityAt: number): boolean => {
        const run = new Run();
        run.begin({ totalMs: 1_000 * LEAST, runningMs: null, idleMs, idlePauseMs: null });
        run.activityAt = activityAt;
        run.now += spanMs;
        return run.fire({ kind: 'idle', version: 0 });
      };
      if (endsWith(T0 + first + more)) expect(endsWith(T0 + first)).toBe(true);
    }),
    { numRuns: 500 },
  );
});
