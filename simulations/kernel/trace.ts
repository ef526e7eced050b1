/**
 * The identity of a run: a rolling hash over every step and every commit. Two runs of the same name (commit, Node version,
 * seed, scenario) end with the same hash, or something depends on what it must not depend on.
 */
import { KERNEL_LIMITS } from './limits.ts';
import { hashOf } from './random.ts';

export type TraceObserver = (step: number, line: () => string) => void;

export class Trace {
  #low = 0x9e3779b9;
  #high = 0x85ebca6b;
  #steps = 0;
  readonly #labels = new Map<string, number>();
  /** Hash after every so many steps. */
  readonly checkpoints: string[] = [];
  readonly #observer: TraceObserver | undefined;
  readonly #keepsCheckpoints: boolean;

  constructor(options: { readonly observer?: TraceObserver; readonly checkpoints?: boolean } = {}) {
    this.#observer = options.observer;
    this.#keepsCheckpoints = options.checkpoints ?? false;
  }

  get steps(): number {
    return this.#steps;
  }

  get hash(): string {
    return this.#high.toString(16).padStart(8, '0') + this.#low.toString(16).padStart(8, '0');
  }

  step(dueUs: number, label: string): void {
    this.#steps += 1;
    let known = this.#labels.get(label);
    if (known === undefined) {
      known = hashOf(label);
      this.#labels.set(label, known);
    }
    this.#fold(dueUs % 4_294_967_296);
    this.#fold(known);
    this.#observer?.(this.#steps, () => `${dueUs} ${label}`);
    if (this.#keepsCheckpoints && this.#steps % KERNEL_LIMITS.checkpointSteps === 0) this.checkpoints.push(this.hash);
  }

  /** What was committed, in words that name it wholly. */
  commit(sequence: number, messageId: string): void {
    this.#fold(sequence);
    this.#fold(hashOf(messageId));
    this.#observer?.(this.#steps, () => `  commit ${sequence} ${messageId}`);
  }

  #fold(n: number): void {
    this.#low = (Math.imul(this.#low ^ n, 0x01000193) + this.#high) >>> 0;
    this.#high = (Math.imul(this.#high ^ (this.#low >>> 15), 0x85ebca6b) + n) >>> 0;
  }
}
