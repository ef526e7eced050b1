/** Memory of message ids for a window. Lean: ids as 53-bit hashes, so that a million of them cost what a million numbers do. */
import { hashOf } from '../kernel/random.ts';
import { PORT_LIMITS } from './limits.ts';

export type MessageKey = string | number;

/** Lean: 53 bits of hash. */
export const keyOf = (messageId: string, lean: boolean): MessageKey =>
  lean ? (hashOf(messageId) % 2_097_152) * 4_294_967_296 + hashOf(messageId, 0x2545f491) : messageId;

export class MessageIds<T> {
  readonly #windowMs: number;
  readonly #known = new Map<MessageKey, T>();
  /** In order of time, from `#head` on. */
  #keys: MessageKey[] = [];
  #times: number[] = [];
  #head = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get size(): number {
    return this.#known.size;
  }

  get(nowMs: number, key: MessageKey): T | undefined {
    this.#forget(nowMs);
    return this.#known.get(key);
  }

  remember(nowMs: number, key: MessageKey, what: T): void {
    this.#known.set(key, what);
    this.#keys.push(key);
    this.#times.push(nowMs);
  }

  #forget(nowMs: number): void {
    while (this.#head < this.#keys.length && (this.#times[this.#head] as number) + this.#windowMs <= nowMs) {
      this.#known.delete(this.#keys[this.#head] as MessageKey);
      this.#head += 1;
    }
    if (this.#head < PORT_LIMITS.forgottenIdsPerSweep || this.#head * 2 < this.#keys.length) return;
    this.#keys = this.#keys.slice(this.#head);
    this.#times = this.#times.slice(this.#head);
    this.#head = 0;
  }
}
