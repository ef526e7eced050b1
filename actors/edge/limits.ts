import type { DurationMs } from '#bus/units.ts';

export const EDGE_ACTOR_LIMITS = {
  /** Below this a lease is lost to one slow garbage collection or one bus leader election (5–8 s). */
  leaseMsMin: 1_000 as DurationMs,
  /** Above this a dead node's sandboxes stay in doubt for too long. */
  leaseMsMax: 600_000 as DurationMs,
} as const;

/** What a node promises and where it stops; the numbers it multiplies are read from the machine. */
export const ADMISSION_LIMITS = {
  /** Sockets, logs and pipes that one sandbox may hold open in the Edge: its Aether channel, and files being read. */
  descriptorsPerSandbox: 4,
  /**
   * CPU promised ÷ CPU present. A quota is a ceiling that the scheduler enforces, not a share that is set aside; sandboxes wait
   * for a model most of the time (@paper §4: nine in ten average ≤5 % of what they ask for).
   */
  cpuOvercommit: 2_048,
  /** A node with less memory available takes no more sandboxes, whatever their limits promise. */
  memoryFloorMiB: 768,
  /** Left beside what a paused sandbox gave back, when it goes on. Less than creates leave, so that they stop first. */
  resumeFloorMiB: 256,
  /** A node with less takes no more sandboxes, whatever they ask for: the bus and the logs need what is left. */
  diskFloorMiB: 512,
} as const;

export const COMMAND_LIMITS = {
  /** A stop that overtook its create is given back this often, then answered SANDBOX_NOT_FOUND. */
  earlyStopRetries: 5,
  earlyStopRetryMs: 200,
} as const;
