/** What every benchmark shares: percentiles, the machine's description, the table, the result file. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { projectRoot } from '#runtime/project-root.ts';

export type Figures = Readonly<Record<string, number>>;

export const percentile = (samples: readonly number[], p: number): number => {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
};
export const median = (samples: readonly number[]): number => percentile(samples, 0.5);

const round = (n: number): number => Math.round(n * 1_000) / 1_000;

const machine = () => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
  node: process.version,
  debian: readFileSync('/etc/debian_version', 'utf8').trim(),
});

/** Runs a benchmark, prints its figures beside their targets, and writes `test/perf/results/<name>.json`. */
export const runBench = async (
  name: string,
  targets: Readonly<Record<string, string>>,
  measure: (say: (line: string) => void) => Promise<Figures>,
): Promise<void> => {
  const say = (line: string) => process.stderr.write(`${name}: ${line}\n`);
  const figures = Object.fromEntries(Object.entries(await measure(say)).map(([key, value]) => [key, round(value)]));
  const table = new Table({ head: ['figure', 'measured', 'target'], style: { head: [], border: [] } });
  for (const [key, value] of Object.entries(figures)) table.push([key, value, targets[key] ?? '']);
  process.stdout.write(`${table.toString()}\n`);
  const dir = join(projectRoot(), 'test/perf/results');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, `${name}.json`), `${JSON.stringify({ name, machine: machine(), figures }, null, 2)}\n`);
  process.stdout.write(`${JSON.stringify(figures)}\n`);
};

export const timed = async <T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> => {
  const startedAt = performance.now();
  const value = await work();
  return { ms: performance.now() - startedAt, value };
};

/** Keeps `width` of `count` pieces of work in flight. */
export const inFlight = async (width: number, count: number, work: (index: number) => Promise<void>): Promise<void> => {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
};
