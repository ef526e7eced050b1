/** What an Edge finds when it looks at its own host; carried in beats as data, judged by watchers. @paper §3.2 */
import { z } from 'zod';
import { CpuMillis, MiB } from '../units.ts';

/** What the host has, whatever the node offers on top of it. */
export const Machine = z.object({ memoryMiB: MiB, cpuMillis: CpuMillis, diskMiB: MiB });
export type Machine = z.infer<typeof Machine>;

export const Probes = z.object({
  /** Free where sandboxes write. */
  diskFreeMiB: MiB,
  memoryAvailableMiB: MiB,
  /** Share of the last ten seconds in which some task waited for memory, 0…100; null where the kernel does not count it. */
  memoryPressurePercent: z.number().min(0).max(100).nullable(),
  /** Lines that the kernel logged at level error or worse since the Edge started; null where its log cannot be read. */
  kernelErrors: z.number().int().nonnegative().nullable(),
  /** Newest such line, cut. */
  kernelError: z.string().max(200).nullable(),
  /** `diskMiB`: of the file system that sandboxes write to. */
  machine: Machine.nullable().default(null),
});
export type Probes = z.infer<typeof Probes>;
