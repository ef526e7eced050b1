/** What a sandbox really takes of its node, on the average of its life: drawn by its id, so that nothing has to be kept. @paper §4, figures 7 and 8 */
import type { SandboxId } from '#bus/ids.ts';
import type { Limits } from '#bus/sandbox/spec.ts';
import { hashOf, Random } from '../kernel/random.ts';
import { cpuShare, memoryShare } from './distributions.ts';

/** Thousandths of a core, and KiB. Whole, so that sums come back to nothing. */
export type Use = { readonly cpuMillis: number; readonly memoryKiB: number };

export const realUseOf = (id: SandboxId, { cpuMillis, memoryMiB }: Pick<Limits, 'cpuMillis' | 'memoryMiB'>): Use => {
  const random = new Random(hashOf(id));
  return { cpuMillis: Math.round(cpuShare(random) * cpuMillis), memoryKiB: Math.round(memoryShare(random) * memoryMiB * 1_024) };
};
