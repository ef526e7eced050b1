/** Time for the in-memory adapters: read and waited for through here only, so that a test or a simulation decides it. */
import type { Clock } from '#actors/ports/clock.ts';
import type { TimestampMs } from '#bus/units.ts';

export interface SchedulingClock extends Clock {
  /** Runs `task` once after `delayMs`. Returns the function that calls it off. */
  schedule(delayMs: number, task: () => void): () => void;
}

type Task = { readonly dueMs: number; readonly run: () => void };

/** Stands still until `advance` is called. */
export class ManualClock implements SchedulingClock {
  #nowMs: number;
  readonly #tasks = new Set<Task>();

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): TimestampMs {
    return this.#nowMs as TimestampMs;
  }
  monotonicMs(): number {
    return this.#nowMs;
  }
  schedule(delayMs: number, run: () => void): () => void {
    const task = { dueMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#tasks.add(task);
    return () => void this.#tasks.delete(task);
  }

  /** Moves time on and runs what falls due, in order of its time, tasks that those tasks schedule included. */
  advance(spanMs: number): void {
    const until = this.#nowMs + spanMs;
    for (;;) {
      const next = this.#earliest();
      if (!next || next.dueMs > until) break;
      this.#tasks.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
    }
    this.#nowMs = until;
  }

  #earliest(): Task | undefined {
    let earliest: Task | undefined;
    for (const task of this.#tasks) if (!earliest || task.dueMs < earliest.dueMs) earliest = task;
    return earliest;
  }
}
