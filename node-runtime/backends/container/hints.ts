/**
 * How many processors a limit of CPU time is worth, for programs that ask the kernel, which can only count whole ones that may be
 * run on: pinning a sandbox to so many would make busy ones collide while other processors rest.
 */
import { availableParallelism } from 'node:os';
import type { CpuMillis } from '#bus/units.ts';

/** Empty where the limit is no less than the machine. `nproc` and OpenMP read the first variable, Go programs the second. */
export const cpuHints = (cpuMillis: CpuMillis, machine = availableParallelism()): Readonly<Record<string, string>> => {
  const processors = Math.ceil(cpuMillis / 1_000);
  return processors < machine ? { OMP_NUM_THREADS: String(processors), GOMAXPROCS: String(processors) } : {};
};
