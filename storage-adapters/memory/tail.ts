/** Follows an in-memory stream: one message after another, the handler awaited, woken by whoever stores. */
import type { Tail } from '#actors/ports/event-log.ts';
import type { StoredMessage } from '../commit-message.ts';
import type { SchedulingClock } from './clock.ts';
import { MEMORY_LIMITS } from './limits.ts';

export type MemoryTailOptions = {
  /** First message at or after a sequence; null when there is none yet or none can be had. */
  readonly next: (sequence: number) => StoredMessage | null;
  readonly fromSequence: number;
  readonly clock: SchedulingClock;
  readonly handle: (message: StoredMessage) => Promise<void>;
  readonly onClose: () => void;
};

export class MemoryTail implements Tail {
  readonly #options: MemoryTailOptions;
  readonly #ended: Promise<void>;
  #nextSequence: number;
  #closing = false;
  #wake: () => void = () => {};

  constructor(options: MemoryTailOptions) {
    this.#options = options;
    this.#nextSequence = Math.max(1, options.fromSequence);
    this.#ended = this.#run();
  }

  wake(): void {
    this.#wake();
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#options.onClose();
    this.#wake();
    await this.#ended;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // the owner has the tail before its handler runs
    while (!this.#closing) {
      const message = this.#options.next(this.#nextSequence);
      if (!message) {
        await this.#woken();
        continue;
      }
      try {
        await this.#options.handle(message);
        this.#nextSequence = message.sequence + 1;
      } catch {
        this.#options.clock.schedule(MEMORY_LIMITS.failedHandlerRetryMs, () => this.#wake());
        await this.#woken();
      }
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
