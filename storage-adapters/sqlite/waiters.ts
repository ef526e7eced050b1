/** Calls that wait until the projection has got far enough. Bounded, and each ends at its time-out. */
import { DsecError } from '#bus/errors.ts';
import { PROJECTION_LIMITS } from './limits.ts';
import type { Sequences } from './sandbox.projection.ts';

type Waiter = { readonly atLeast: Sequences; readonly resolve: () => void; readonly reject: (error: DsecError) => void; readonly timer: NodeJS.Timeout };

export class Waiters {
  readonly #waiting = new Set<Waiter>();

  get isAny(): boolean {
    return this.#waiting.size > 0;
  }

  wait(atLeast: Sequences, asOf: Sequences, timeoutMs: number): Promise<void> {
    if (isReached(atLeast, asOf)) return Promise.resolve();
    if (this.#waiting.size >= PROJECTION_LIMITS.waiters)
      return Promise.reject(DsecError.of('OVERLOADED', `${PROJECTION_LIMITS.waiters} calls already wait for the list of sandboxes; try again`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#end(waiter, () => reject(tooLate(atLeast, timeoutMs))), timeoutMs);
      const waiter: Waiter = { atLeast, resolve, reject, timer };
      this.#waiting.add(waiter);
    });
  }

  reached(asOf: Sequences): void {
    for (const waiter of this.#waiting) if (isReached(waiter.atLeast, asOf)) this.#end(waiter, waiter.resolve);
  }

  close(): void {
    for (const waiter of this.#waiting)
      this.#end(waiter, () =>
        waiter.reject(DsecError.of('API_UNAVAILABLE', 'the list of sandboxes is being closed; ask another apiserver', { outcome: 'not_applied' })),
      );
  }

  #end(waiter: Waiter, settle: () => void): void {
    clearTimeout(waiter.timer);
    this.#waiting.delete(waiter);
    settle();
  }
}

const isReached = (atLeast: Sequences, asOf: Sequences): boolean => Object.entries(atLeast).every(([shard, sequence]) => (asOf[shard] ?? 0) >= sequence);

const tooLate = (atLeast: Sequences, timeoutMs: number): DsecError => {
  const wanted = Object.entries(atLeast).map(([shard, sequence]) => `${sequence} of shard ${shard}`);
  return DsecError.of('DEADLINE_EXCEEDED', `the list of sandboxes did not reach sequence ${wanted.join(', ')} within ${timeoutMs} ms; ask again`, {
    outcome: 'not_applied',
  });
};
