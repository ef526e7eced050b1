/**
 * Ctrl-C or SIGTERM while sandboxes are being made: the create is waited for, so that what it made can be ended. A second
 * one gives the wait up.
 */
import { complain } from './output.ts';

export class CreateInterrupt {
  readonly #abort = new AbortController();
  #count = 0;
  readonly #onSignal = (): void => {
    this.#count += 1;
    if (this.#count > 1) this.#abort.abort();
    else void complain('waiting for the create, to end what it makes; once more to leave at once').catch(() => {});
  };

  constructor() {
    process.on('SIGINT', this.#onSignal);
    process.on('SIGTERM', this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  get happened(): boolean {
    return this.#count > 0;
  }

  stop(): void {
    process.off('SIGINT', this.#onSignal);
    process.off('SIGTERM', this.#onSignal);
  }
}
