/**
 * The waiting for what becomes of a create: for news, as it comes, and for answers where none comes. The pace of asking slows down;
 * after a reconnect everything is asked for at once, for news may have been missed. Does not know what is waited for.
 */
import type { DsecError } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Session } from '../session.ts';
import { Latch, type WakeReason } from '../transport/latch.ts';

export type NewsWaitOptions = { readonly deadlineAt: number; readonly signal?: AbortSignal | undefined };
export type Awaited = {
  readonly isDone: () => boolean;
  /** Asks for what has been quiet for so long; 0: for everything. */
  readonly ask: (quietMs: number) => Promise<void>;
  /** Asked for before anything is waited for. */
  readonly mayExist: boolean;
  readonly firstPauseMs: number;
  /** Few enough that all of it is asked for each time. */
  readonly isFew: boolean;
};

export class NewsWait {
  readonly #session: Session;
  readonly #options: NewsWaitOptions;
  /** Opened by everything that has to be looked at: done, failure, reconnect. */
  readonly #wake = new Latch();
  readonly #ended: Promise<void>;
  #end: () => void = () => {};
  #failure: DsecError | undefined;

  constructor(session: Session, options: NewsWaitOptions) {
    this.#session = session;
    this.#options = options;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get leftMs(): number {
    return this.#options.deadlineAt - this.#session.clock.now();
  }

  /** The first failure is thrown to whoever waits. */
  fail(error: DsecError): void {
    this.#failure ??= error;
    this.#finish('failed');
  }

  done(): void {
    this.#finish('done');
  }

  /** News may have been missed. */
  missed(): void {
    this.#wake.open('reconnected');
  }

  /** Resolves when it is done, or when the time is over. */
  async until({ isDone, ask, mayExist, firstPauseMs, isFew }: Awaited): Promise<void> {
    if (mayExist) await ask(0);
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * SDK_LIMITS.catchUpGrowth, SDK_LIMITS.catchUpSlowestMs)) {
      if (this.#isOver(isDone)) return;
      const why = await this.#wake.wait(Math.min(pauseMs, this.leftMs), this.#options.signal);
      if (this.#isOver(isDone)) return;
      const asking = ask(why === 'reconnected' || isFew ? 0 : pauseMs / 2);
      asking.catch(() => {}); // when the news comes first, nobody needs the answer any more
      await Promise.race([asking, this.#ended]);
    }
  }

  #isOver(isDone: () => boolean): boolean {
    if (this.#failure) throw this.#failure;
    return isDone() || this.leftMs <= 0;
  }

  #finish(reason: WakeReason): void {
    this.#wake.open(reason);
    this.#end();
  }
}
