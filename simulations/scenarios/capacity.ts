/** What a simulated node offers. */
import { Capacity } from '#bus/edge/schema.ts';
import { ADMISSION_LIMITS } from '#actors/edge/limits.ts';

type Asked = { readonly sandboxes: number; readonly memoryMiB: number; readonly cpus?: number };

/** A machine of the paper's unit: 30,000 cores and 250 TB of memory over 160 of them. @paper §2.4 */
export const PAPER_MACHINE = { memoryMiB: 1_600_000, cpus: 188 } as const;

/**
 * What the Edge of such a machine offers: its memory promised as often as an Edge
 * promises it (`EDGE_LIMITS.memoryOvercommit`), because limits are upper bounds that few reach.
 */
export const PAPER_NODE = { sandboxes: 3_200, memoryMiB: PAPER_MACHINE.memoryMiB * 32, cpus: PAPER_MACHINE.cpus } as const;

export const capacityOf = ({ sandboxes, memoryMiB, cpus = 32 }: Asked): Capacity =>
  Capacity.parse({
    sandboxes,
    memoryMiB,
    cpuMillis: cpus * 1_000 * ADMISSION_LIMITS.cpuOvercommit,
    pids: 4_194_304,
    diskMiB: 16_000_000,
    descriptors: (sandboxes + 1) * ADMISSION_LIMITS.descriptorsPerSandbox,
  });
