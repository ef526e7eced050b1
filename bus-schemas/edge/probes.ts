/** What an Edge finds when it looks at its own host; carried in beats as data, judged by watchers. @paper §3.2 */
import { z } from 'zod';
import { MiB } from '../units.ts';

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
});
export type Probes = z.infer<typeof Probes>;
