/** Wakes one waiting loop early. Opened while nobody waits, the next wait returns at once; reasons do not pile up. */
import { cancelled, onAbort } from './clock.ts';

export type WakeReason = 'done' | 'failed' | 'reconnected' | 'news' | 'elapsed';

export class Latch {
  #reason: WakeReason | undefined;
  #resolve: ((reason: WakeReason) => void) | undefined;

  open(reason: WakeReason): void {
    if (this.#resolve) this.#resolve(reason);
    else this.#reason = reason;
  }

  /** Resolves when opened or after `timeoutMs`; rejects with CANCELLED when `signal` aborts. */
  wait(timeoutMs: number, signal?: AbortSignal): Promise<WakeReason> {
    const waiting = this.#reason;
    this.#reason = undefined;
    if (signal?.aborted) return Promise.reject(cancelled());
    if (waiting) return Promise.resolve(waiting);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        off();
        this.#resolve = undefined;
      };
      const off = onAbort(signal, () => {
        end();
        reject(cancelled());
      });
      this.#resolve = (reason) => {
        end();
        resolve(reason);
      };
      const timer = setTimeout(() => this.#resolve?.('elapsed'), timeoutMs);
    });
  }
}
