/** Memory of message ids for a window. Lean: ids as 53-bit hashes, so that a million of them cost what a million numbers do. */
import { hashOf } from '../kernel/random.ts';
import { PORT_LIMITS } from './limits.ts';

type Key = string | number;

export class MessageIds<T> {
  readonly #windowMs: number;
  readonly #lean: boolean;
  readonly #known = new Map<Key, T>();
  /** In order of time, from `#head` on. */
  #keys: Key[] = [];
  #times: number[] = [];
  #head = 0;

  constructor(windowMs: number, lean: boolean) {
    this.#windowMs = windowMs;
    this.#lean = lean;
  }

  get size(): number {
    return this.#known.size;
  }

  get(nowMs: number, messageId: string): T | undefined {
    this.#forget(nowMs);
    return this.#known.get(this.#keyOf(messageId));
  }

  remember(nowMs: number, messageId: string, what: T): void {
    const key = this.#keyOf(messageId);
    this.#known.set(key, what);
    this.#keys.push(key);
    this.#times.push(nowMs);
  }

  #keyOf(messageId: string): Key {
    if (!this.#lean) return messageId;
    return (hashOf(messageId) % 2_097_152) * 4_294_967_296 + hashOf(messageId, 0x2545f491);
  }

  #forget(nowMs: number): void {
    while (this.#head < this.#keys.length && (this.#times[this.#head] as number) + this.#windowMs <= nowMs) {
      this.#known.delete(this.#keys[this.#head] as Key);
      this.#head += 1;
    }
    if (this.#head < PORT_LIMITS.forgottenIdsPerSweep || this.#head * 2 < this.#keys.length) return;
    this.#keys = this.#keys.slice(this.#head);
    this.#times = this.#times.slice(this.#head);
    this.#head = 0;
  }
}
