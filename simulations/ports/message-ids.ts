/**
 * Memory of ids for a window: 53 bits of hash each, in arrays of numbers, because a run at full scale has a million of them
 * at a time. Two ids of one hash would be taken for one; among a million that happens once in twenty thousand runs. Times are below 2³² ms,
 * as virtual time is.
 */
import { hashOf } from '../kernel/random.ts';
import { PORT_LIMITS } from './limits.ts';

export type MessageKey = number;

/** 53 bits, never 0. */
export const keyOf = (messageId: string): MessageKey => (hashOf(messageId) % 2_097_152) * 4_294_967_296 + hashOf(messageId, 0x2545f491) || 1;

/** One table with open addressing; what is past the window goes when the table is built anew. */
export class MessageIds {
  readonly #windowMs: number;
  #keys = new Float64Array(PORT_LIMITS.idSlotsStart);
  #sequences = new Uint32Array(PORT_LIMITS.idSlotsStart);
  #timesMs = new Uint32Array(PORT_LIMITS.idSlotsStart);
  #used = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The sequence that was remembered for it within the window. */
  get(nowMs: number, key: MessageKey): number | undefined {
    const slot = this.#slotOf(key);
    return this.#keys[slot] === key && this.#isKnown(slot, nowMs) ? this.#sequences[slot] : undefined;
  }

  remember(nowMs: number, key: MessageKey, sequence: number): void {
    if (this.#used * 4 > this.#keys.length * 3) this.#rebuild(nowMs);
    const slot = this.#slotOf(key);
    if (this.#keys[slot] !== key) this.#used += 1;
    this.#put(slot, key, sequence, nowMs);
  }

  #isKnown(slot: number, nowMs: number): boolean {
    return (this.#timesMs[slot] as number) + this.#windowMs > nowMs;
  }

  /** Where it lies, or the free slot where it belongs. */
  #slotOf(key: MessageKey): number {
    const mask = this.#keys.length - 1;
    let slot = (key >>> 0) & mask;
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  #put(slot: number, key: MessageKey, sequence: number, timeMs: number): void {
    this.#keys[slot] = key;
    this.#sequences[slot] = sequence;
    this.#timesMs[slot] = timeMs;
  }

  /** With room for half as many more as are known now, at least. */
  #rebuild(nowMs: number): void {
    const [keys, sequences, timesMs] = [this.#keys, this.#sequences, this.#timesMs];
    const known: number[] = [];
    for (let slot = 0; slot < keys.length; slot += 1) if (keys[slot] !== 0 && this.#isKnown(slot, nowMs)) known.push(slot);
    let slots: number = PORT_LIMITS.idSlotsStart;
    while (slots < known.length * 2) slots *= 2;
    this.#keys = new Float64Array(slots);
    this.#sequences = new Uint32Array(slots);
    this.#timesMs = new Uint32Array(slots);
    this.#used = known.length;
    for (const slot of known) this.#put(this.#slotOf(keys[slot] as number), keys[slot] as number, sequences[slot] as number, timesMs[slot] as number);
  }
}
