/**
 * The rule that `burst` is held against: for each sandbox three nodes at random, the least loaded as the last beats showed it; nothing
 * decided in between is laid over them. @paper §7
 */
import { randomFrom } from '#actors/placement/random.ts';

/** Largest load ÷ mean load, when `count` sandboxes are placed at an even pace over `placedMs` and beats come each second. */
export const bestOfThreeMaxOverMean = (nodes: number, count: number, placedMs: number, seed: number): number => {
  const random = randomFrom(seed);
  const load = new Array<number>(nodes).fill(0);
  let seen = [...load];
  let beats = 0;
  for (let n = 0; n < count; n += 1) {
    const beatsByNow = Math.floor(((n / count) * placedMs) / 1_000);
    if (beatsByNow > beats) {
      beats = beatsByNow;
      seen = [...load];
    }
    let best = random(nodes);
    for (let sample = 0; sample < 2; sample += 1) {
      const other = random(nodes);
      if ((seen[other] ?? 0) < (seen[best] ?? 0)) best = other;
    }
    load[best] = (load[best] ?? 0) + 1;
  }
  return Math.max(...load) / (count / nodes);
};
