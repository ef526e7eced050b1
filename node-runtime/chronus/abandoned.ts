/**
 * Commands whose caller left before anybody knew of them: a start that is still on its way to this Edge, and comes after the kill, is
 * refused. In memory: a start that was on its way to an Edge that has died never arrives.
 */
import type { ExecId } from '#bus/ids.ts';
import { CHRONUS_LIMITS } from './limits.ts';

export class Abandoned {
  /** When; the oldest first. */
  readonly #since = new Map<ExecId, number>();

  add(execId: ExecId, nowMs: number): void {
    this.#since.delete(execId);
    this.#since.set(execId, nowMs);
    for (const [oldest, since] of this.#since) {
      if (this.#since.size <= CHRONUS_LIMITS.abandonedCommands && nowMs - since < CHRONUS_LIMITS.abandonedMs) break;
      this.#since.delete(oldest);
    }
  }

  has(execId: ExecId, nowMs: number): boolean {
    const since = this.#since.get(execId);
    return since !== undefined && nowMs - since < CHRONUS_LIMITS.abandonedMs;
  }
}
