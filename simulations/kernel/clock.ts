/** A node's own idea of time: off by a skew, and drifting. Sleeps are measured on the drifting clock too. */
import type { Clock } from '#actors/ports/clock.ts';
import type { TimestampMs } from '#bus/units.ts';
import { US_PER_MS, type VirtualTime } from './virtual-time.ts';
import type { Task } from './heap.ts';

/**
 * Where virtual time begins on the wall: ten days into 1970. So early a time in ms is a small integer to V8, which costs no memory of
 * its own, and still later than the longest time that anything is looked back for.
 */
export const EPOCH_MS = 864_000_000;

export type ClockFault = { readonly skewMs: number; readonly driftPpm: number };
export const TRUE_TIME: ClockFault = { skewMs: 0, driftPpm: 0 };

export class NodeClock implements Clock {
  readonly #time: VirtualTime;
  readonly fault: ClockFault;

  constructor(time: VirtualTime, fault: ClockFault = TRUE_TIME) {
    this.#time = time;
    this.fault = fault;
  }

  now(): TimestampMs {
    return (EPOCH_MS + this.fault.skewMs + this.monotonicMs()) as TimestampMs;
  }

  monotonicMs(): number {
    const us = this.#time.nowUs;
    return Math.floor((us + Math.floor((us * this.fault.driftPpm) / 1_000_000)) / US_PER_MS);
  }

  /** Runs after `delayMs` of this node's time. */
  after(delayMs: number, label: string, run: () => void): Task {
    return this.schedule(delayMs, { label, run });
  }

  schedule<T extends Task>(delayMs: number, task: T): T {
    return this.#time.schedule(Math.ceil((delayMs * US_PER_MS * 1_000_000) / (1_000_000 + this.fault.driftPpm)), task);
  }

  cancel(task: Task | null | undefined): void {
    this.#time.cancel(task);
  }
}
