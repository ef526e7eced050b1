/**
 * Removes captures whose forks have all ended. They have no name, so that only live sandboxes hold them; whoever died in the middle
 * of a fork has left one that nobody holds. Looks at the whole log only when there is something that may go.
 */
import type { LayerStore } from '#actors/ports/layer-store.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { collectGarbage } from '../images/gc.ts';
import type { Log } from '../log/log.ts';
import { FORK_LIMITS } from './limits.ts';

export type ForkSweepOptions = {
  readonly store: LayerStore;
  /** Layers that live sandboxes stand on, of all nodes that read this store. */
  readonly liveLayers: () => Promise<ReadonlySet<LayerDigest>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly graceMs?: number;
};

/** How many layers went. */
export const sweepForks = async ({ store, liveLayers, clock, log, graceMs = FORK_LIMITS.graceMs }: ForkSweepOptions): Promise<number> => {
  const now = (clock.now() + 1) as TimestampMs;
  const due = (await store.list()).some((layer) => layer.volatile && layer.storedAt < now - graceMs);
  if (!due) return 0;
  const { removed, freedBytes } = await collectGarbage(store, { liveLayers, now, graceMs, only: ({ volatile }) => volatile === true });
  log.info('forks.swept', { layers: removed.length, freedBytes });
  return removed.length;
};

export const startForkSweep = (options: ForkSweepOptions): { stop(): void } => {
  const sweep = (): void => void sweepForks(options).catch((thrown: unknown) => options.log.warn('forks.sweep_failed', { message: (thrown as Error).message }));
  const timer = setInterval(sweep, FORK_LIMITS.sweepMs).unref();
  return { stop: () => clearInterval(timer) };
};
