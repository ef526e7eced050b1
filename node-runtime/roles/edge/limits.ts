import { ADMISSION_LIMITS, COMMAND_LIMITS } from '#actors/edge/limits.ts';

export const EDGE_LIMITS = {
  ...ADMISSION_LIMITS,
  ...COMMAND_LIMITS,
  /** Descriptors kept for everything else in the process. */
  descriptorReserve: 1_000,
  /** Largest limit of open files that a sandbox may ask for. */
  openFilesMax: 65_536,
  /**
   * Memory promised ÷ memory present: limits are upper bounds that few reach (@paper §4, §5.2). What is really there decides
   * too: below `memoryFloorMiB` available the node takes no more sandboxes.
   */
  memoryOvercommit: 32,
  /**
   * Disk promised ÷ disk free at start: a limit is an upper bound that few reach. A sandbox's disk is a sparse file, so only what
   * is written is taken; below `diskFloorMiB` of free space the node takes no more sandboxes.
   */
  diskOvercommit: 8,
  /** Disk kept for the bus, logs and layers: what 100 sandboxes may keep of output, and room for the event log. */
  diskReserveMiB: 4_096,
  /**
   * Processes promised ÷ processes that the kernel can name: limits are upper bounds against fork bombs, few sandboxes have
   * more than a handful. All sandboxes together are held below the kernel's number by the launcher.
   */
  pidsOvercommit: 64,
  /** Memory kept for the host's own processes. */
  memoryReserveMiB: 1_024,
  /** Id ranges: slot × 65,536 + 100,000 must stay below 2³². */
  slotsMax: 65_000,
  /** Sandboxes of one node: the paper's density (@paper §4), rounded up. */
  sandboxesMax: 4_096,
  /** Unacknowledged commands: a burst of packed creates, each up to 256 sandboxes. */
  commandsInFlight: 512,
  /** Launches at a time: the launcher is one process, more only queue in it. */
  launchesInFlight: 32,
  /** Two renewals may fail before the lease runs out. */
  renewalsPerLease: 3,
  /** How often in that time it is looked at: a renewal that failed is tried again at the next look. */
  leaseTicksPerRenewal: 10,
  /** What the null backend offers for each sandbox where its configuration does not say: more than anybody asks for in a scale test. */
  simulatedMiB: 65_536,
  simulatedPids: 4_096,
  /** News of a followed batch gather this long before they are told: a chunk's commit for each would cost more than the sandboxes. */
  newsLingerMs: 250,
  /** How often a command that is still being worked on says so: well within the queue's acknowledgement time. */
  extendEveryMs: 10_000,
  /** Layers named in a beat: what lies ready is a preference, and a beat is sent each second. */
  beatLayers: 64,
  beatMs: 1_000,
  /** Exec logs stay readable this long after the sandbox ended. */
  logRetentionMs: 600_000,
  sweepMs: 30_000,
  /** Directories that one `rm` is given: arguments stay far below what an exec takes. */
  trashPerRm: 512,
  /** How often a drain tells how many sandboxes are left. */
  drainReportMs: 500,
  /** Memory ÷ compressed swap for paused sandboxes: its table costs 1/256 of its size, and a paused node holds less than it has. */
  swapDivisor: 2,
  /** How long an operation waits for a paused sandbox to go on; beyond, the caller is told and may come again. */
  wakeMs: 60_000,
  /** Operations being answered at a time: long polls of every command of every sandbox. */
  opsInFlight: 20_000,
} as const;
