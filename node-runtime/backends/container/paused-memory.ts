/**
 * Memory of paused sandboxes: given back to the node when they rest, brought back when they go on. @paper §6.3
 *
 * Gives back through the launcher, a few at a time; the node's own compressed swap is made when it is first needed, and removed
 * at the node's clean end. Without any swap only what files fill is given back, and that is said once. Does not decide whether a
 * sandbox may be resumed: that is `actors/edge/resume.ts`.
 */
import type { SandboxId } from '#bus/ids.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { Log } from '../../log/log.ts';
import { Semaphore } from '../../roles/semaphore.ts';
import { CONTAINER_LIMITS } from './limits.ts';

export type PausedMemoryOptions = {
  readonly launcher: () => Promise<Pick<LauncherClient, 'reclaim' | 'prefetch' | 'swapOn' | 'swapOff'>>;
  /** Size of the node's own swap; 0: none is made, and what the host has is used. */
  readonly swapMiB: () => number;
  readonly availableMiB: () => number;
  readonly log: Log;
};

const MIB = 1024 * 1024;

export class PausedMemory {
  readonly #o: PausedMemoryOptions;
  readonly #workers = new Semaphore(CONTAINER_LIMITS.reclaimsInFlight);
  #swap: Promise<void> | undefined;

  constructor(options: PausedMemoryOptions) {
    this.#o = options;
  }

  /**
   * Answers with what the node has got back, compressed copies counted off; null when that goes on in the background, because many
   * are paused at once, or when somebody has resumed it.
   */
  async giveBack(id: SandboxId): Promise<number | null> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), CONTAINER_LIMITS.giveBackPatienceMs);
    });
    const work = this.#workers.run(() => this.#reclaim(id));
    work.catch((thrown: unknown) => this.#o.log.debug('pause.memory_kept', { actorId: id, message: (thrown as Error).message }));
    try {
      return await Promise.race([work.catch(() => null), patience]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** What it will touch soon is read back while it already runs; never so much that the node falls short. */
  async prefetch(id: SandboxId): Promise<void> {
    const spareMiB = Math.floor(this.#o.availableMiB() / 4);
    const mostMiB = Math.min(CONTAINER_LIMITS.prefetchMiB, spareMiB);
    try {
      await this.#workers.run(async () => (await this.#o.launcher()).prefetch(id, mostMiB));
    } catch (thrown) {
      this.#o.log.debug('resume.not_prefetched', { actorId: id, message: (thrown as Error).message }); // its pages come when they are touched
    }
  }

  /** At the node's clean end, when nothing is paused any more. */
  async removeSwap(): Promise<void> {
    try {
      await (await this.#o.launcher()).swapOff();
      this.#swap = undefined;
    } catch (thrown) {
      this.#o.log.warn('swap.not_removed', { message: (thrown as Error).message });
    }
  }

  async #reclaim(id: SandboxId): Promise<number> {
    this.#swap ??= this.#makeSwap();
    await this.#swap;
    const { swappedBytes, costBytes, droppedBytes } = await (await this.#o.launcher()).reclaim(id);
    return Math.floor(Math.max(0, swappedBytes - costBytes + droppedBytes) / MIB);
  }

  /** A node that cannot have it does without, and a later process tries again. */
  async #makeSwap(): Promise<void> {
    const { log } = this.#o;
    const sizeMiB = this.#o.swapMiB();
    if (sizeMiB === 0) return;
    try {
      const { device, bytes } = await (await this.#o.launcher()).swapOn(sizeMiB);
      log.info('swap.ready', { device, sizeMiB: Math.round(bytes / MIB) });
    } catch (thrown) {
      log.warn('swap.absent', { message: (thrown as Error).message, consequence: 'paused sandboxes give back only what files fill' });
    }
  }
}
