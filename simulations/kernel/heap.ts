/**
 * The agenda: a binary heap on parallel arrays, ordered by (due, tiebreak, sequence). The first two come from outside; the
 * sequence makes the order total, so that a run never depends on how the heap happens to lie.
 */
import { KERNEL_LIMITS } from './limits.ts';

/**
 * `run` is null once it was called off: the entry stays where it lies until it is due or swept out. What it would have worked on is
 * let go of by then, where it says how.
 */
export type Task = { readonly label: string; run: ((this: Task) => void) | null; letGo?(): void };

export class TaskHeap {
  #due = new Float64Array(KERNEL_LIMITS.heapEntriesStart);
  #tie = new Uint32Array(KERNEL_LIMITS.heapEntriesStart);
  #sequence = new Float64Array(KERNEL_LIMITS.heapEntriesStart);
  #tasks: Task[] = [];
  #nextSequence = 0;

  get size(): number {
    return this.#tasks.length;
  }

  /** When the earliest task is due; infinite when there is none. */
  get earliestDue(): number {
    return this.#tasks.length === 0 ? Number.POSITIVE_INFINITY : (this.#due[0] as number);
  }

  push(due: number, tie: number, task: Task): void {
    const at = this.#tasks.length;
    if (at === this.#due.length) this.#grow();
    if (at >= KERNEL_LIMITS.pendingTasksMax) throw new Error(`more than ${KERNEL_LIMITS.pendingTasksMax} tasks are pending: something schedules without end`);
    this.#tasks.push(task);
    this.#rise(at, due, tie, this.#nextSequence++, task);
  }

  pop(): Task | undefined {
    const first = this.#tasks[0];
    const last = this.#tasks.length - 1;
    if (!first) return undefined;
    const task = this.#tasks.pop() as Task;
    if (last > 0) this.#sink(0, this.#due[last] as number, this.#tie[last] as number, this.#sequence[last] as number, task);
    return first;
  }

  /** Drops what was called off. Orders nothing anew: keys stay, so what remains comes in the order it would have come in. */
  sweep(): void {
    const kept: { due: number; tie: number; sequence: number; task: Task }[] = [];
    for (let i = 0; i < this.#tasks.length; i += 1) {
      const task = this.#tasks[i] as Task;
      if (task.run) kept.push({ due: this.#due[i] as number, tie: this.#tie[i] as number, sequence: this.#sequence[i] as number, task });
    }
    this.#tasks = [];
    for (const { due, tie, sequence, task } of kept) {
      this.#tasks.push(task);
      this.#rise(this.#tasks.length - 1, due, tie, sequence, task);
    }
  }

  #isBefore(due: number, tie: number, sequence: number, other: number): boolean {
    const otherDue = this.#due[other] as number;
    if (due !== otherDue) return due < otherDue;
    const otherTie = this.#tie[other] as number;
    if (tie !== otherTie) return tie < otherTie;
    return sequence < (this.#sequence[other] as number);
  }

  #rise(from: number, due: number, tie: number, sequence: number, task: Task): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(due, tie, sequence, parent)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, due, tie, sequence, task);
  }

  #sink(from: number, due: number, tie: number, sequence: number, task: Task): void {
    const size = this.#tasks.length;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && this.#isBefore(this.#due[right] as number, this.#tie[right] as number, this.#sequence[right] as number, child)) child = right;
      if (this.#isBefore(due, tie, sequence, child)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, due, tie, sequence, task);
  }

  #move(from: number, to: number): void {
    this.#due[to] = this.#due[from] as number;
    this.#tie[to] = this.#tie[from] as number;
    this.#sequence[to] = this.#sequence[from] as number;
    this.#tasks[to] = this.#tasks[from] as Task;
  }

  #put(at: number, due: number, tie: number, sequence: number, task: Task): void {
    this.#due[at] = due;
    this.#tie[at] = tie;
    this.#sequence[at] = sequence;
    this.#tasks[at] = task;
  }

  #grow(): void {
    const grown = this.#due.length * 2;
    const due = new Float64Array(grown);
    const tie = new Uint32Array(grown);
    const sequence = new Float64Array(grown);
    due.set(this.#due);
    tie.set(this.#tie);
    sequence.set(this.#sequence);
    this.#due = due;
    this.#tie = tie;
    this.#sequence = sequence;
  }
}
