/** The pause before something broken is tried again: waits for the connection first, grows while nothing gets better. */
import type { ConnectionWatch } from './connection.ts';
import { JETSTREAM_LIMITS } from './limits.ts';

export class Backoff {
  readonly #watch: ConnectionWatch;
  #pauseMs: number = JETSTREAM_LIMITS.reopenMinMs;
  #cancelled = false;
  #cancel: () => void = () => {};

  constructor(watch: ConnectionWatch) {
    this.#watch = watch;
  }

  async wait(): Promise<void> {
    if (this.#cancelled) return;
    let timer: NodeJS.Timeout | undefined;
    const cancelled = new Promise<void>((resolve) => {
      this.#cancel = resolve;
    });
    const paused = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#pauseMs);
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, JETSTREAM_LIMITS.reopenMaxMs);
    await Promise.race([cancelled, paused.then(() => this.#watch.settled())]);
    clearTimeout(timer);
  }

  /** Something worked: the next pause is short again. */
  reset(): void {
    this.#pauseMs = JETSTREAM_LIMITS.reopenMinMs;
  }

  /** Ends a wait and makes every later one return at once. */
  cancel(): void {
    this.#cancelled = true;
    this.#cancel();
  }
}
