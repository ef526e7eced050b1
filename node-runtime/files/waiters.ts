/** Those who wait for something to change. Each looks for itself. */
import { DsecError } from '#bus/errors.ts';
import { FILES_LIMITS } from './limits.ts';

export class Waiters {
  readonly #waiting = new Set<() => void>();

  wake(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves with true when `isSo`, or with false after `ms`. */
  until(isSo: () => boolean, ms: number): Promise<boolean> {
    if (isSo() || ms === 0) return Promise.resolve(isSo());
    if (this.#waiting.size >= FILES_LIMITS.waitersPerSession)
      return Promise.reject(DsecError.of('OVERLOADED', `${this.#waiting.size} requests of this session wait already; send fewer at a time`));
    return new Promise((resolve) => {
      const stop = (so: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(so);
      };
      const look = (): void => {
        if (isSo()) stop(true);
      };
      const timer = setTimeout(() => stop(false), ms);
      this.#waiting.add(look);
    });
  }
}
