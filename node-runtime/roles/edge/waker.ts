/**
 * Brings a sandbox that is paused back to life for whoever needs its inside: once, however many ask at the same time. @paper §6.3
 *
 * What arrives while it is being paused waits for that, then resumes it. Does not decide which operations need the inside (`ops.ts`), nor
 * whether the sandbox may go on (its actor and `actors/edge/resume.ts`).
 */
import { DsecError, WireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Changes } from './changes.ts';
import type { SandboxDriver } from './commands.ts';
import { EDGE_LIMITS } from './limits.ts';

export type WakerOptions = { readonly driver: Pick<SandboxDriver, 'peek' | 'submit'>; readonly changes: Changes; readonly clock: Clock };

/** States that a paused sandbox is in, comes from or goes to. */
const AT_REST: ReadonlySet<SandboxStatus> = new Set(['pausing', 'paused', 'resuming', 'snapshotting']);

export class Waker {
  readonly #o: WakerOptions;
  readonly #waking = new Map<SandboxId, Promise<SandboxState>>();

  constructor(options: WakerOptions) {
    this.#o = options;
  }

  /** The state in which it runs, or has begun to end. Rejects with the reason when it cannot go on. */
  awake(address: ActorAddress, id: SandboxId): Promise<SandboxState> {
    const waking = this.#waking.get(id) ?? this.#wake(address, id).finally(() => this.#waking.delete(id));
    this.#waking.set(id, waking);
    return waking;
  }

  async #wake(address: ActorAddress, id: SandboxId): Promise<SandboxState> {
    const { clock, changes } = this.#o;
    const giveUpAtMs = clock.monotonicMs() + EDGE_LIMITS.wakeMs;
    for (let asked = false; ; ) {
      const { state, stored } = this.#held(address, id);
      if (!AT_REST.has(state.status)) return state;
      const leftMs = giveUpAtMs - clock.monotonicMs();
      if (leftMs <= 0) throw tooLong(state);
      if (state.status !== 'paused') await changes.next(id, leftMs);
      else {
        if (asked) throwFailure(stored);
        asked = true;
        await this.#resume(address, stored);
      }
    }
  }

  /** Somebody else may have been quicker: then the state says so. */
  async #resume(address: ActorAddress, { commit }: StoredCommit): Promise<void> {
    const commandId = `${address.id}:wake:${commit.version}`;
    const { correlationId } = commit;
    const meta = { commandId, correlationId, causationId: commit.commandId, principal: 'platform', at: this.#o.clock.now() };
    const result = await this.#o.driver.submit(address, { type: 'ResumeSandbox' }, meta);
    if (!result.ok && result.error.code !== 'INVALID_STATE') throw new DsecError(result.error);
  }

  #held(address: ActorAddress, id: SandboxId): { readonly state: SandboxState; readonly stored: StoredCommit } {
    const held = this.#o.driver.peek(address);
    if (!held) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id}; see dsec ls`);
    return held;
  }
}

/** It is paused again after a resume began: the commit that led back says why. */
const throwFailure = ({ commit }: StoredCommit): void => {
  const failed = commit.events.find(({ type }) => type === 'SandboxTransitionFailed') as { readonly error?: unknown } | undefined;
  const error = WireError.safeParse(failed?.error);
  if (error.success) throw new DsecError(error.data);
};

const tooLong = ({ id, status }: SandboxState): DsecError =>
  DsecError.of('INVALID_STATE', `sandbox ${id} is still ${status} after ${EDGE_LIMITS.wakeMs} ms; try again when that is over`, {
    retry: 'later',
    details: { status },
  });
