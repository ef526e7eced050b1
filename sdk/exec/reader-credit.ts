/**
 * The credit of one reader on a stream whose program waits for it: taken before the first read, renewed while the reader is
 * open however slow it is, moved as it reads, given back at its end.
 */
import { randomKey } from '../transport/clock.ts';
import type { Clock } from '../transport/clock.ts';
import type { OpResult } from '../transport/op-client.ts';

/** Part of the window that is read before the program is told. */
const TOLD_PARTS = 4;
/** Renewals per lease: one may be lost. */
const RENEWALS = 3;

export type CreditCall = (request: { reader: string; consumed: number; release?: boolean }, signal?: AbortSignal) => Promise<OpResult<'credit'>>;

export class ReaderCredit {
  readonly #call: CreditCall;
  readonly #clock: Clock;
  readonly #reader = randomKey();
  readonly #closed = new AbortController();
  #consumed: number;
  #told: number;
  #windowBytes = 0;
  #telling: Promise<void> | undefined;

  constructor(call: CreditCall, clock: Clock, offset: number) {
    this.#call = call;
    this.#clock = clock;
    this.#consumed = this.#told = offset;
  }

  async open(): Promise<void> {
    const { data } = await this.#tell();
    this.#windowBytes = data.windowBytes;
    if (!data.ended) void this.#renew(data.leaseMs / RENEWALS);
  }

  /** Everything below `offset` has been handed on. */
  passed(offset: number): void {
    this.#consumed = offset;
    if (this.#consumed - this.#told < Math.max(1, this.#windowBytes / TOLD_PARTS)) return;
    this.#telling ??= this.#tell()
      .then(
        () => {},
        () => {}, // the next renewal says it again, and the reads themselves tell when the Edge is gone
      )
      .finally(() => {
        this.#telling = undefined;
        if (!this.#closed.signal.aborted) this.passed(this.#consumed);
      });
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#call({ reader: this.#reader, consumed: this.#consumed, release: true }).catch(() => {}); // it ends by itself a little later
  }

  async #tell(): Promise<OpResult<'credit'>> {
    const consumed = this.#consumed;
    const answer = await this.#call({ reader: this.#reader, consumed }, this.#closed.signal);
    this.#told = Math.max(this.#told, consumed);
    return answer;
  }

  async #renew(everyMs: number): Promise<void> {
    for (let ended = false; !ended; ) {
      try {
        await this.#clock.sleep(everyMs, this.#closed.signal);
        ended = (await this.#tell()).data.ended;
      } catch {
        if (this.#closed.signal.aborted) return; // else an outage: the Edge that comes back waits for its readers for a while
      }
    }
  }
}
