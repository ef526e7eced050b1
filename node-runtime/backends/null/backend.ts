/**
 * The null backend: sandboxes that exist in the log alone. For scale tests of the control plane: an Edge process can host tens of
 * thousands of actors with all their commits, and nothing of them on the machine.
 *
 * INV-OWN holds trivially: what the log says lives is what there is.
 */
import { DsecError, type WireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { NodeBackend } from '../node-backend.ts';

/** Stands in the state where a process id is due; nothing is ever signalled by it. */
const NO_PROCESS = 1;

export class NullBackend implements NodeBackend {
  async ensurePrepared(): Promise<void> {}
  async ensureLaunched(): Promise<{ readonly pid: number }> {
    return { pid: NO_PROCESS };
  }

  /** Nothing that could end by itself: it holds until nobody waits for it any more. */
  watch(): Promise<WireError | null> {
    return new Promise(() => {});
  }

  async ensureDestroyed(): Promise<void> {}
  async ensurePaused(): Promise<{ readonly memoryGivenBackMiB: number | null }> {
    return { memoryGivenBackMiB: 0 };
  }
  async ensureResumed(): Promise<void> {}
  async ensureSnapshot({ id }: SandboxState): Promise<never> {
    throw DsecError.of('NOT_SUPPORTED', `sandbox ${id} is a record only (backend null) and has nothing to snapshot`);
  }
  async present(): Promise<SandboxId[]> {
    return [];
  }
  async destroyUnknown(): Promise<void> {}
  async freezeAll(): Promise<void> {}
  async removeSwap(): Promise<void> {}
  follow(): void {}
  activityAt(): number {
    return 0;
  }
  async handler(): Promise<undefined> {
    return undefined;
  }
  endedHandler(): undefined {
    return undefined;
  }
}
