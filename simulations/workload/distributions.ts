/**
 * The shapes of the paper's week, as generators of chance alone. Each says its source, its shape, its unit and the quantiles that
 * the paper gives; `distributions.unit.spec.ts` holds them to these. What the paper shows only as a curve is fitted by the
 * simplest shape through the quantiles it names.
 */
import type { Random } from '../kernel/random.ts';

/** A log-normal through two quantiles: median `p50`, and `at` at the quantile whose normal deviate is `z`. */
const logNormal = (random: Random, p50: number, at: number, z: number): number => p50 * Math.exp((random.normal() * Math.log(at / p50)) / z);
const Z90 = 1.2816;
const Z99 = 2.3263;

/**
 * Life of a sandbox, ms. @paper §4, figure 5: medians 17.4 min (containers) and 15.5 min (microVMs), p99 above 3 h; log-normal
 * through the median and 3 h 10 min at p99. Cut at a day, the longest life that is given by default.
 */
export const lifeMs = (random: Random, backend: 'container' | 'microvm' = 'container'): number =>
  Math.min(86_400_000, Math.max(1_000, Math.round(logNormal(random, (backend === 'container' ? 17.4 : 15.5) * 60_000, 190 * 60_000, Z99))));

/**
 * Sandboxes of one job. @paper §1, §4, figure 2: thousands are typical, the tail reaches 32K; log-normal with median 2,000 and
 * p99 at 28,000, cut at 32,768.
 */
export const sandboxesPerJob = (random: Random): number => Math.min(32_768, Math.max(1, Math.round(logNormal(random, 2_000, 28_000, Z99))));

/**
 * Mean CPU use ÷ CPU asked for, 0…1. @paper §4, figure 7: about 90 % of sandboxes average ≤5 %; log-normal with median 1.2 % and
 * 5 % at p90.
 */
export const cpuShare = (random: Random): number => Math.min(1, logNormal(random, 0.012, 0.05, Z90));

/**
 * Resident memory ÷ memory asked for, 0…1. @paper §4, figure 8, §5.2: limits are upper bounds that few reach; log-normal with
 * median 11 % and 55 % at p90.
 */
export const memoryShare = (random: Random): number => Math.min(1, logNormal(random, 0.11, 0.55, Z90));

/**
 * Sandboxes of a job that share one base image (fan-out). @paper §4, figure 3: containers median 3, p90 28; microVMs 1 and 3.
 * Log-normal, at least 1, whole.
 */
export const imageFanOut = (random: Random, backend: 'container' | 'microvm' = 'container'): number =>
  Math.max(1, Math.round(backend === 'container' ? logNormal(random, 3, 28, Z90) : logNormal(random, 1, 3, Z90)));

/** Whether it needs a workspace or toolkit beyond the base. @paper §4: 67.8 % do. */
export const needsLayers = (random: Random): boolean => random.chance(678);

/** The paper's three phases of a sandbox, as parts of its life. @paper §4: set-up, tool calls with waits between, test. */
export type Phases = { readonly setUpMs: number; readonly toolsMs: number; readonly testMs: number };
export const phasesOf = (random: Random, life: number): Phases => {
  const setUpMs = Math.round(life * (0.02 + 0.08 * random.fraction()));
  const testMs = Math.round(life * (0.05 + 0.15 * random.fraction()));
  return { setUpMs, toolsMs: life - setUpMs - testMs, testMs };
};

/** Limits that are asked for, MiB and thousandths of a core. @paper §2.1 shows 4,096 MB and 4 cores. */
export const limitsAsked = (random: Random): { readonly memoryMiB: number; readonly cpuMillis: number } => {
  const large = random.chance(400);
  return { memoryMiB: large ? 4_096 : random.pick([1_024, 2_048]), cpuMillis: large ? 4_000 : random.pick([1_000, 2_000]) };
};

/** Load of a day, 0…1 of its peak, by hour. @paper §2.4, §3.4: 3 million a day, 380,000 at once; overflow to the cloud only in peaks. */
const BY_HOUR = [0.35, 0.3, 0.28, 0.25, 0.25, 0.3, 0.4, 0.55, 0.7, 0.85, 0.95, 1, 0.9, 0.85, 0.95, 1, 0.98, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4];
export const dayShape = (ms: number): number => BY_HOUR[Math.floor(ms / 3_600_000) % 24] ?? 1;

/** Share of local use above which eligible creates go to the cloud, and how many are eligible. @paper §3.4: 80 %; 70 % of container tasks. */
export const CLOUD_OVERFLOW = { aboveUse: 0.8, eligiblePerMille: 700 } as const;
export const isCloudEligible = (random: Random): boolean => random.chance(CLOUD_OVERFLOW.eligiblePerMille);
