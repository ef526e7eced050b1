/**
 * Chance as a tree of generators: a child is named, and its numbers depend on the seed and its path alone. So a draw that is
 * added in one part of the simulation leaves every other part as it was.
 */

/** FNV-1a, 32 bits, over UTF-16 units. */
export const hashOf = (text: string, basis = 0x811c9dc5): number => {
  let h = basis >>> 0;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
};

/** Murmur's finaliser: every bit of the input reaches every bit of the output. */
export const mix = (n: number): number => {
  let h = n >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
};

/** sfc32: 128 bits of state, four additions per number. */
export class Random {
  readonly #path: number;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(path: number) {
    this.#path = path >>> 0;
    this.#a = mix(path ^ 0x9e3779b9);
    this.#b = mix(path ^ 0x243f6a88);
    this.#c = mix(path ^ 0xb7e15162);
    for (let i = 0; i < 8; i += 1) this.next();
  }

  static fromSeed(seed: number): Random {
    return new Random(mix(seed));
  }

  child(name: string): Random {
    return new Random(mix(hashOf(name, this.#path ^ 0x811c9dc5)));
  }

  /** 32 bits. */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  /** [0, 1). */
  fraction(): number {
    return this.next() / 4_294_967_296;
  }

  /** A whole number in [from, to]. */
  between(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1));
  }

  /** True in `perMille` of a thousand cases; no number is drawn when it cannot be true. */
  chance(perMille: number): boolean {
    return perMille > 0 && this.fraction() * 1_000 < perMille;
  }

  pick<T>(members: readonly T[]): T {
    if (members.length === 0) throw new Error('nothing to pick from');
    return members[this.between(0, members.length - 1)] as T;
  }

  /** Standard normal, by Box and Muller; two draws each. */
  normal(): number {
    const u = 1 - this.fraction();
    return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * this.fraction());
  }
}
