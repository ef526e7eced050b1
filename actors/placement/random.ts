/** Random numbers as a function of a seed, so that a choice can be repeated from data. Not for secrets. */

/** The next whole number in [0, bound). */
export type Random = (bound: number) => number;

/** Mulberry32: 32 bits of state, one multiplication or two per number, even enough to pick nodes. */
export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4_294_967_296) * bound);
  };
};

/** Every member once, in random order; only as much is shuffled as is asked for. */
export function* shuffled<T>(members: readonly T[], random: Random): Generator<T, void> {
  const pool = [...members];
  for (let i = 0; i < pool.length; i += 1) {
    const j = i + random(pool.length - i);
    const drawn = pool[j] as T;
    pool[j] = pool[i] as T;
    yield drawn;
  }
}
