/** News of the sandboxes of one batch, gathered until there are enough to be worth a message. */
import type { DsecError } from '#bus/errors.ts';
import type { CreateOutcome } from '#bus/sandbox/outcome.ts';
import { type BatchNews, type LaunchItem, NO_NEWS } from '#actors/edge/launch.ts';
import { EDGE_LIMITS } from './limits.ts';

export class Gathering {
  #running: BatchNews['running'] = [];
  #failed: BatchNews['failed'] = [];
  #open: number;
  #failure: DsecError | undefined;
  #wake: () => void = () => {};

  constructor(open: number) {
    this.#open = open;
  }

  /** Every item has settled, and all of that has been taken. */
  get isOver(): boolean {
    return this.#open === 0 && !this.#hasNews;
  }

  settle({ index, attempt }: LaunchItem, outcome: CreateOutcome): void {
    this.#open -= 1;
    if (outcome.ok) this.#running.push({ index, attempt });
    else this.#failed.push({ index, attempt, error: outcome.error });
    this.#wake();
  }

  fail(error: DsecError): void {
    this.#failure = error;
    this.#wake();
  }

  /** Resolves with what has settled: at once when that is all, else a moment after the first of it. Rejects after `fail`. */
  async take(): Promise<BatchNews> {
    while (!this.#hasNews && !this.#isSettled) await this.#changed();
    if (!this.#isSettled) await this.#linger();
    if (this.#failure) throw this.#failure;
    const news = { ...NO_NEWS, running: this.#running, failed: this.#failed };
    this.#running = [];
    this.#failed = [];
    return news;
  }

  get #hasNews(): boolean {
    return this.#running.length + this.#failed.length > 0;
  }
  get #isSettled(): boolean {
    return this.#open === 0 || this.#failure !== undefined;
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #linger(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, EDGE_LIMITS.newsLingerMs);
      this.#wake = () => {
        if (!this.#isSettled) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
