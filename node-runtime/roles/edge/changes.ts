/** Who waits for the next commit of a sandbox, in this process. */
import type { SandboxId } from '#bus/ids.ts';

export class Changes {
  readonly #waiting = new Map<SandboxId, Set<() => void>>();

  /** True at the next commit, false after `withinMs` without one. */
  next(id: SandboxId, withinMs: number): Promise<boolean> {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    return new Promise((resolve) => {
      const settle = (changed: boolean): void => {
        clearTimeout(timer);
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
        resolve(changed);
      };
      const wake = (): void => settle(true);
      const timer = setTimeout(() => settle(false), withinMs);
      timer.unref();
      waiting.add(wake);
    });
  }

  notify(id: SandboxId): void {
    for (const wake of [...(this.#waiting.get(id) ?? [])]) wake();
  }
}
