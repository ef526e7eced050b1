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

/** `count` different members in random order; all of them when there are no more. */
export const sample = <T>(members: readonly T[], count: number, random: Random): T[] => {
  const pool = [...members];
  const wanted = Math.min(count, pool.length);
  for (let i = 0; i < wanted; i += 1) {
    const j = i + random(pool.length - i);
    [pool[i], pool[j]] = [pool[j] as T, pool[i] as T];
  }
  return pool.slice(0, wanted);
};
