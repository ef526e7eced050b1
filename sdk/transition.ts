/**
 * Life-cycle commands that wait for what they ask for: the command is sent under one key, then the sandbox is followed
 * until the goal is reached or the commit says that it will not be. A time-out here never takes the command back.
 */
import type { Decision } from '#bus/api/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import { DsecError, WireError } from '#bus/errors.ts';
import { type SandboxId, parseSandboxId } from '#bus/ids.ts';
import { ENDED_STATUSES, SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { safeParse } from '#bus/proof.ts';
import { SDK_LIMITS } from './limits.ts';
import type { WaitOptions } from './run-options.ts';
import type { Session } from './session.ts';
import { Latch } from './transport/latch.ts';

export type Goal = {
  /** For messages: `stop`. */
  readonly verb: 'stop' | 'delete' | 'pause' | 'resume' | 'snapshot';
  readonly reached: (state: SandboxState, events: readonly { readonly type: string }[]) => boolean;
  /** A sandbox that has ended, or that nobody knows any more, is what was asked for. */
  readonly endIsGoal: boolean;
};
export type SettleOptions = WaitOptions & {
  /** False returns as soon as the command is stored. */
  readonly wait?: boolean | undefined;
};

/** The state that reached the goal; null when the record of the sandbox is already forgotten, or with `wait: false`. */
export const commandAndSettle = async (
  session: Session,
  id: SandboxId,
  goal: Goal,
  send: () => Promise<Decision>,
  options: SettleOptions,
): Promise<SandboxState | null> => {
  if (options.wait === false) {
    await send();
    return null;
  }
  const follower = new GoalFollower(session, id, goal, options.timeoutMs ?? SDK_LIMITS.transitionTimeoutMs);
  try {
    // A failed transition leaves the state as it was: only the commits after this version tell.
    if (!goal.endIsGoal) await follower.markStart();
    const decision = await send();
    return await follower.settle(decision, options.signal);
  } finally {
    follower.close();
  }
};

class GoalFollower {
  readonly #session: Session;
  readonly #id: SandboxId;
  readonly #goal: Goal;
  readonly #timeoutMs: number;
  readonly #giveUpAt: number;
  readonly #wake = new Latch();
  readonly #stop: readonly (() => void)[];
  #version = 0;
  #result: { state: SandboxState | null } | { error: DsecError } | undefined;

  constructor(session: Session, id: SandboxId, goal: Goal, timeoutMs: number) {
    this.#session = session;
    this.#id = id;
    this.#goal = goal;
    this.#timeoutMs = timeoutMs;
    this.#giveUpAt = session.clock.now() + timeoutMs;
    const follower = {
      onCommit: (commit: Commit, message: { sequence(): number | undefined }) => {
        this.#apply(commit);
        session.saw(parseSandboxId(id).shard, message.sequence());
      },
      onFailure: (error: DsecError) => this.#finish({ error }),
    };
    this.#stop = [
      session.feed.follow(sandboxAddress(session.project, id), follower),
      session.bus.onReconnect(() => this.#wake.open('reconnected')),
      session.losses.onLoss(parseSandboxId(id).edge, () => this.#wake.open('reconnected')),
    ];
  }

  /** Versions up to the one the sandbox has now are none of this command's. */
  async markStart(): Promise<void> {
    const { sandboxes } = await this.#session.api.call('get', { ids: [this.#id] }, { giveUpAfterMs: this.#timeoutMs });
    this.#version = Math.max(this.#version, sandboxes[0]?.version ?? 0);
    this.#result = undefined;
  }

  async settle(decision: Decision, signal: AbortSignal | undefined): Promise<SandboxState | null> {
    if (decision.decision === 'ignored') await this.#ask(signal); // the goal may have been reached long ago
    let pauseMs: number = SDK_LIMITS.catchUpEveryMs;
    while (!this.#result) {
      const leftMs = this.#giveUpAt - this.#session.clock.now();
      if (leftMs <= 0) throw this.#deadline();
      await this.#wake.wait(Math.min(pauseMs, leftMs), signal);
      if (!this.#result) await this.#ask(signal);
      pauseMs = SDK_LIMITS.catchUpSlowestMs;
    }
    if ('error' in this.#result) throw this.#result.error;
    return this.#result.state;
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }

  /** Goals that are states are seen in the newest one; the others in the commits since the start. */
  async #ask(signal: AbortSignal | undefined): Promise<void> {
    const call = { giveUpAfterMs: Math.max(1, this.#giveUpAt - this.#session.clock.now()), signal };
    const { sandboxes } = await this.#session.api.call('get', { ids: [this.#id] }, call);
    const view = sandboxes[0];
    if (!view)
      return this.#finish(this.#goal.endIsGoal ? { state: null } : { error: DsecError.of('SANDBOX_NOT_FOUND', `no sandbox ${this.#id} in this project`) });
    this.#session.saw(parseSandboxId(this.#id).shard, view.streamSequence);
    if (view.lost || this.#goal.endIsGoal || this.#goal.reached(view.state, [])) return this.#judge(view.state, []);
    const { commits } = await this.#session.api.call('events', { id: this.#id, afterVersion: this.#version }, call);
    for (const commit of commits) this.#apply(commit);
  }

  #apply(commit: Commit): void {
    if (commit.version <= this.#version || this.#result) return;
    const state = safeParse(SandboxState, commit.state);
    if (!state.success) return;
    this.#version = commit.version;
    this.#judge(state.data, commit.events);
  }

  #judge(state: SandboxState, events: readonly { readonly type: string; readonly error?: unknown }[]): void {
    const failed = events.find((event) => event.type === 'SandboxTransitionFailed');
    if (this.#goal.reached(state, events)) return this.#finish({ state });
    if (ENDED_STATUSES.has(state.status)) return this.#finish(this.#goal.endIsGoal ? { state } : { error: endedError(state) });
    if (failed && !this.#goal.endIsGoal) {
      const error = WireError.safeParse(failed.error);
      this.#finish({ error: error.success ? new DsecError(error.data) : DsecError.of('INTERNAL', `${this.#goal.verb} of ${this.#id} failed`) });
    }
  }

  #finish(result: { state: SandboxState | null } | { error: DsecError }): void {
    this.#result ??= result;
    this.#wake.open('done');
  }

  #deadline(): DsecError {
    const { verb } = this.#goal;
    return DsecError.of(
      'DEADLINE_EXCEEDED',
      `${verb} of ${this.#id} did not finish within ${this.#timeoutMs} ms; the command is stored and goes on, ask again to wait for it`,
      {
        retry: 'same',
        details: { sandboxId: this.#id },
      },
    );
  }
}

export const endedError = (state: SandboxState): DsecError =>
  state.failure
    ? new DsecError(state.failure)
    : DsecError.of('SANDBOX_ENDED', `sandbox ${state.id} is stopped (${state.stopReason ?? 'requested'})`, { details: { sandboxId: state.id } });
