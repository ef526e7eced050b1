/**
 * Sandboxes at rest: pauses, resumes, and the standstill of all when the node has lost its lease. @paper §6.3
 *
 * Freezes first, then gives memory back; thaws first, then reads back. Does not know who else holds a sandbox at rest (`freezer.ts`), how
 * memory goes (`paused-memory.ts`), nor whether it may go on (`actors/edge/resume.ts`).
 */
import { DsecError, type WireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { Chronus } from '../../chronus/chronus.ts';
import type { Channels } from './channels.ts';
import type { Freezer } from './freezer.ts';
import type { PausedMemory } from './paused-memory.ts';

export type RestsOptions = {
  readonly freezer: Freezer;
  readonly channels: Channels;
  readonly memory: PausedMemory;
  /** Why a paused sandbox may not go on now; null when it may. */
  readonly refusalOfResume: (sandbox: SandboxState) => WireError | null;
};

export class Rests {
  readonly #o: RestsOptions;

  constructor(options: RestsOptions) {
    this.#o = options;
  }

  async pause(sandbox: SandboxState): Promise<{ readonly memoryGivenBackMiB: number | null }> {
    await this.settle(sandbox.id, await this.#o.channels.attached(sandbox), true);
    return { memoryGivenBackMiB: await this.#o.memory.giveBack(sandbox.id) };
  }

  async resume(sandbox: SandboxState): Promise<void> {
    const { freezer, channels, memory } = this.#o;
    const refusal = freezer.runs(sandbox.id) ? null : this.#o.refusalOfResume(sandbox);
    if (refusal) throw new DsecError(refusal);
    await this.settle(sandbox.id, await channels.attached(sandbox), false);
    void memory.prefetch(sandbox.id);
  }

  /**
   * Commands rest or run, and so does the clock of their time-outs. It stands only while they are known to rest, so that whatever fails
   * between the two is made good by the next try.
   */
  async settle(id: SandboxId, { chronus }: { readonly chronus: Chronus }, resting: boolean): Promise<void> {
    const { freezer } = this.#o;
    if (!resting && freezer.runs(id)) return;
    if (!resting) await chronus.stopClock(false);
    await (resting ? freezer.hold(id, 'paused') : freezer.release(id, 'paused'));
    if (resting) await chronus.stopClock(true);
  }

  /** Of all that the kernel has, connected or not. One that is paused stays so when the others run again. */
  async freezeAll(present: readonly SandboxId[], frozen: boolean): Promise<void> {
    const { freezer, channels } = this.#o;
    await Promise.allSettled(
      present.map(async (id) => {
        if (frozen) return freezer.hold(id, 'fenced');
        if (isAtRest(channels.stateOf(id))) await freezer.hold(id, 'paused');
        return freezer.release(id, 'fenced');
      }),
    );
  }
}

/** Paused, on the way to it, or paused while a snapshot of it is taken. */
const isAtRest = (state: SandboxState | undefined): boolean =>
  state?.status === 'pausing' || state?.status === 'paused' || (state?.status === 'snapshotting' && state.returnTo === 'paused');
