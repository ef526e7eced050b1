/**
 * Tells a caller that calls of his go on without an answer, on whom they wait and why, and when that is over. One story per silent
 * party, however many calls wait for it; it decides nothing, the calls are repeated and given up by `retry.ts` as ever.
 */
import type { DsecError } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Clock } from './clock.ts';

export type WaitNotice = {
  readonly state: 'waiting' | 'answered';
  /** Who is silent: the id of a sandbox, whose Edge answers for it, or `apiserver`. */
  readonly on: string;
  /** Why, as the newest attempt failed: its code, and a message that names the call. */
  readonly error: DsecError;
  /** Milliseconds since the first attempt failed. */
  readonly waitedMs: number;
  /** Milliseconds until the call that waits longest fails with a typed error; 0 once it is answered. */
  readonly givesUpInMs: number;
};
export type WaitListener = (notice: WaitNotice) => void;

/** One call that is being repeated. */
export type Wait = {
  failed(error: DsecError, giveUpAt: number): void;
  /** Whoever answered one call answers again. */
  ended(answered: boolean): void;
};
type Silence = {
  readonly since: number;
  readonly calls: Set<Wait>;
  readonly over: AbortController;
  error: DsecError;
  giveUpAt: number;
  told: boolean;
};

export class Waits {
  readonly #clock: Clock;
  readonly #listener: WaitListener;
  readonly #silences = new Map<string, Silence>();

  constructor(clock: Clock, listener: WaitListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  begin(on: string): Wait {
    const wait: Wait = {
      failed: (error, giveUpAt) => {
        const silence = this.#silences.get(on) ?? this.#fallen(on, error, giveUpAt);
        silence.calls.add(wait);
        silence.error = error;
        silence.giveUpAt = Math.max(silence.giveUpAt, giveUpAt);
      },
      ended: (answered) => {
        const silence = this.#silences.get(on);
        silence?.calls.delete(wait);
        if (silence && (answered || silence.calls.size === 0)) this.#over(on, silence, answered);
      },
    };
    return wait;
  }

  #fallen(on: string, error: DsecError, giveUpAt: number): Silence {
    const silence: Silence = { since: this.#clock.now(), calls: new Set(), over: new AbortController(), error, giveUpAt, told: false };
    this.#silences.set(on, silence);
    void this.#tellAgainAndAgain(on, silence);
    return silence;
  }

  async #tellAgainAndAgain(on: string, silence: Silence): Promise<void> {
    for (let pauseMs: number = SDK_LIMITS.waitNoticeFirstMs; ; pauseMs = SDK_LIMITS.waitNoticeEveryMs) {
      await this.#clock.sleep(pauseMs, silence.over.signal).catch(() => {});
      if (silence.over.signal.aborted) return;
      silence.told = true;
      this.#tell(on, silence, 'waiting');
    }
  }

  #over(on: string, silence: Silence, answered: boolean): void {
    this.#silences.delete(on);
    silence.over.abort();
    if (silence.told && answered) this.#tell(on, silence, 'answered');
  }

  #tell(on: string, { since, error, giveUpAt }: Silence, state: WaitNotice['state']): void {
    const now = this.#clock.now();
    const notice = { state, on, error, waitedMs: now - since, givesUpInMs: state === 'waiting' ? Math.max(0, giveUpAt - now) : 0 };
    try {
      this.#listener(notice);
    } catch {
      // a notice that nobody can show must not end the calls that it is about
    }
  }
}
