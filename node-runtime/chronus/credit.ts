/**
 * Who reads a stream that may be held back, and how far they are. Pure: time comes in as data.
 *
 * A reader has credit while it says so at least every `creditMs`. The program waits for the slowest reader; with none it does
 * not wait, but for a while after the start, and after the return of an Edge, in which a first reader may come.
 */
import { EXEC_LIMITS } from '#bus/limits.ts';
import { DsecError } from '#bus/errors.ts';
import { CHRONUS_LIMITS } from './limits.ts';

/** What Aether is told: bytes below `discard` are needed no more; `hold`: a full log waits. */
export type Window = { readonly discard: number; readonly hold: boolean };
type Reader = { readonly consumed: number; readonly untilMs: number };

export class Credit {
  readonly #readers = new Map<string, Reader>();
  #graceUntilMs: number;

  constructor(nowMs: number) {
    this.#graceUntilMs = nowMs + EXEC_LIMITS.firstCreditMs;
  }

  take(reader: string, consumed: number, nowMs: number): void {
    this.#forget(nowMs);
    if (!this.#readers.has(reader) && this.#readers.size >= CHRONUS_LIMITS.readersPerStream) {
      throw DsecError.of('OVERLOADED', `${CHRONUS_LIMITS.readersPerStream} readers already hold credit on this stream; read it without`);
    }
    this.#graceUntilMs = 0;
    const before = this.#readers.get(reader)?.consumed ?? 0;
    this.#readers.set(reader, { consumed: Math.max(before, consumed), untilMs: nowMs + EXEC_LIMITS.creditMs }); // a late repetition takes nothing back
  }

  release(reader: string): void {
    this.#readers.delete(reader);
  }

  /** As it stands at that moment. `discard` is 0 when nobody says that anything may go. */
  window(nowMs: number): Window {
    this.#forget(nowMs);
    const consumed = [...this.#readers.values()].map((reader) => reader.consumed);
    return { hold: consumed.length > 0 || nowMs < this.#graceUntilMs, discard: consumed.length > 0 ? Math.min(...consumed) : 0 };
  }

  /** When the window changes by itself; undefined when it does not. */
  nextChangeMs(): number | undefined {
    const ends = [...this.#readers.values()].map((reader) => reader.untilMs);
    if (this.#graceUntilMs > 0) ends.push(this.#graceUntilMs);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }

  #forget(nowMs: number): void {
    if (nowMs >= this.#graceUntilMs) this.#graceUntilMs = 0;
    for (const [name, { untilMs }] of this.#readers) if (nowMs >= untilMs) this.#readers.delete(name);
  }
}
