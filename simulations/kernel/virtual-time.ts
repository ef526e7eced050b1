/**
 * Virtual time: whole microseconds since the start of the run, moved on only by what is due next.
 *
 * Tasks that fall due in the same microsecond come in the order in which they were scheduled (`fifo`), or in an order that
 * the seed draws (`random`): what depends on such an order is a bug that one of the two shows.
 */
import { type Task, TaskHeap } from './heap.ts';
import { KERNEL_LIMITS } from './limits.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';
import { withTripwires } from './tripwires.ts';

export type Tiebreak = 'fifo' | 'random';
export type Micros = number;
export const US_PER_MS = 1_000;

export class VirtualTime {
  readonly trace: Trace;
  readonly #heap = new TaskHeap();
  readonly #ties: Random | null;
  #nowUs: Micros = 0;
  #steps = 0;
  #calledOff = 0;

  constructor(trace: Trace, random: Random, tiebreak: Tiebreak = 'fifo') {
    this.trace = trace;
    this.#ties = tiebreak === 'random' ? random.child('tiebreak') : null;
  }

  get nowUs(): Micros {
    return this.#nowUs;
  }
  get steps(): number {
    return this.#steps;
  }
  get pending(): number {
    return this.#heap.size - this.#calledOff;
  }
  get nextDueUs(): Micros {
    return this.#heap.earliestDue;
  }

  /** `label` names the step in the trace; it must not hold what differs between equal runs. */
  after(delayUs: Micros, label: string, run: () => void): Task {
    return this.schedule(delayUs, { label, run });
  }

  /** A task of the caller's own making: one object, where there are hundreds of thousands of them. */
  schedule<T extends Task>(delayUs: Micros, task: T): T {
    const due = this.#nowUs + Math.max(0, Math.floor(delayUs));
    this.#heap.push(due, this.#ties ? this.#ties.next() : 0, task);
    return task;
  }

  cancel(task: Task | null | undefined): void {
    if (!task?.run) return;
    task.run = null;
    task.letGo?.();
    this.#calledOff += 1;
    if (this.#calledOff <= KERNEL_LIMITS.sweepAbove || this.#calledOff * 2 <= this.#heap.size) return;
    this.#heap.sweep();
    this.#calledOff = 0;
  }

  /** Runs what is due up to `untilUs`, at most `maxSteps`; true when that time is reached. Ambient time and chance throw meanwhile. */
  run(untilUs: Micros, maxSteps = Number.POSITIVE_INFINITY): boolean {
    return withTripwires(() => {
      for (let left = maxSteps; left > 0; ) {
        const due = this.#heap.earliestDue;
        if (due > untilUs || this.#heap.size === 0) {
          if (untilUs !== Number.POSITIVE_INFINITY) this.#nowUs = Math.max(this.#nowUs, untilUs);
          return true;
        }
        if (this.#step(due)) left -= 1;
      }
      return false;
    });
  }

  #step(due: Micros): boolean {
    const task = this.#heap.pop();
    const run = task?.run;
    if (!task || !run) {
      this.#calledOff -= 1;
      return false;
    }
    this.#nowUs = due;
    this.#steps += 1;
    task.run = null; // a task that has run cannot be called off any more
    this.trace.step(due, task.label);
    run.call(task);
    return true;
  }
}
