/** How long each state on its way to another may last, and what one sandbox may collect. */
import type { DurationMs } from '#bus/units.ts';

const ms = (value: number) => value as DurationMs;

export const SANDBOX_LIMITS = {
  /** Fetching layers: several GB from a slow store; a create's own time-out normally ends it earlier. */
  preparingMs: ms(600_000),
  /** A launch takes milliseconds; the rest is the queue of a node that is given its whole density at once. */
  startingMs: ms(120_000),
  /** Freezing is instant, reclaiming some GB to swap is not (@paper §6.3). */
  pausingMs: ms(60_000),
  resumingMs: ms(60_000),
  /** Packing an upper of many GB. */
  snapshottingMs: ms(600_000),
  /** SIGKILL and tear-down; after it the destroy is tried again, for ever: a stop always ends. */
  stoppingMs: ms(30_000),
  /** Layers recorded in one sandbox's state: bounds the size of every commit. */
  snapshots: 64,
  /** Captures for forks recorded beside them, the newest. */
  forkCaptures: 16,
} as const;
