import { describe, expect, test } from 'vitest';
import type { SandboxId } from '#bus/ids.ts';
import { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CpuMillis, MiB } from '#bus/units.ts';
import { Random } from '../kernel/random.ts';
import { cpuShare, dayShape, imageFanOut, isCloudEligible, lifeMs, memoryShare, needsLayers, phasesOf, sandboxesPerJob } from './distributions.ts';
import { type ImageShare, imagesOf, withImage } from './images.ts';
import { specOf } from './spec.ts';
import { realUseOf } from './use.ts';

const MINUTE = 60_000;
const DRAWS = 40_000;
const sorted = (draw: (random: Random) => number): number[] => {
  const random = Random.fromSeed(11);
  return Array.from({ length: DRAWS }, () => draw(random)).sort((a, b) => a - b);
};
const quantile = (values: readonly number[], q: number): number => values[Math.floor(values.length * q)] ?? Number.NaN;
const within = (value: number, expected: number, share: number): void => {
  expect(value).toBeGreaterThan(expected * (1 - share));
  expect(value).toBeLessThan(expected * (1 + share));
};

describe('a workload has the same quantiles', () => {
  const limits = { cpuMillis: 4_000 as CpuMillis, memoryMiB: 4_096 as MiB };
  const id = (n: number) => `sb-0-${n.toString(16).padStart(20, '0')}-n000` as SandboxId;

  test('what sandboxes really use, drawn by their ids: nine in ten at most 5 % of their cores; always the same', () => {
    const uses = Array.from({ length: DRAWS }, (_, n) => realUseOf(id(n), limits));
    within(uses.filter(({ cpuMillis }) => cpuMillis <= 0.05 * limits.cpuMillis).length / DRAWS, 0.9, 0.01);
    within(
      quantile(
        uses.map(({ memoryKiB }) => memoryKiB).sort((a, b) => a - b),
        0.5,
      ),
      0.11 * 4_096 * 1_024,
      0.05,
    );
    expect(realUseOf(id(7), limits)).toEqual(uses[7]);
  });

  test('images of a job: every sandbox has one, shared as widely as the paper says; two in three images have a layer on top', () => {
    const shares = [...imagesOf(Random.fromSeed(3), 200_000)];
    expect(shares.reduce((sum, { sandboxes }) => sum + sandboxes, 0)).toBe(200_000);
    const fanOuts = shares.map(({ sandboxes }) => sandboxes).sort((a, b) => a - b);
    expect(quantile(fanOuts, 0.5)).toBe(3);
    within(quantile(fanOuts, 0.9), 28, 0.1);
    within(shares.filter(({ layers }) => layers.length === 2).length / shares.length, 0.678, 0.03);
    const spec = withImage(specOf({ ...limits, totalMs: 60_000, idleMs: null }), shares[0] as ImageShare);
    expect(SandboxSpec.parse(spec)).toEqual(spec); // as it would come over the wire
  });
});

describe("the paper's quantiles", () => {
  test.each([
    ['container', 17.4],
    ['microvm', 15.5],
  ] as const)('lives of a %s: median %f min, p99 above 3 h', (backend, median) => {
    const lives = sorted((random) => lifeMs(random, backend));
    within(quantile(lives, 0.5), median * MINUTE, 0.03);
    expect(quantile(lives, 0.99)).toBeGreaterThan(180 * MINUTE);
    expect(quantile(lives, 0.99)).toBeLessThan(240 * MINUTE);
  });

  test('sandboxes per job: thousands are typical, 32K is the most', () => {
    const sizes = sorted(sandboxesPerJob);
    within(quantile(sizes, 0.5), 2_000, 0.05);
    expect(quantile(sizes, 0.99)).toBeGreaterThan(20_000);
    expect(sizes.at(-1)).toBe(32_768);
  });

  test('nine in ten use at most 5 % of the CPU that they ask for', () => {
    const shares = sorted(cpuShare);
    within(shares.filter((share) => share <= 0.05).length / DRAWS, 0.9, 0.01);
    expect(quantile(sorted(memoryShare), 0.5)).toBeLessThan(0.15);
  });

  test.each([
    ['container', 3, 28],
    ['microvm', 1, 3],
  ] as const)('fan-out of a base image, %s: median %i, p90 %i', (backend, p50, p90) => {
    const fanOuts = sorted((random) => imageFanOut(random, backend));
    expect(quantile(fanOuts, 0.5)).toBe(p50);
    within(quantile(fanOuts, 0.9), p90, 0.08);
  });

  test('two in three need more than their base, seven in ten may go to the cloud', () => {
    within(sorted((random) => (needsLayers(random) ? 1 : 0)).reduce((sum, n) => sum + n, 0) / DRAWS, 0.678, 0.02);
    within(sorted((random) => (isCloudEligible(random) ? 1 : 0)).reduce((sum, n) => sum + n, 0) / DRAWS, 0.7, 0.02);
  });

  test('phases fill the life, and a day has one peak', () => {
    const random = Random.fromSeed(5);
    for (let i = 0; i < 100; i += 1) {
      const { setUpMs, toolsMs, testMs } = phasesOf(random, 1_000_000);
      expect(setUpMs + toolsMs + testMs).toBe(1_000_000);
      expect(toolsMs).toBeGreaterThan(setUpMs);
    }
    expect(Math.max(...Array.from({ length: 24 }, (_, hour) => dayShape(hour * 3_600_000)))).toBe(1);
  });
});
