export const KERNEL_LIMITS = {
  /** Entries of the heap at the start; it doubles as needed. */
  heapEntriesStart: 1_024,
  /** Called-off entries are swept out when they are more than this and more than half of the heap: idle timers of long lives. */
  sweepAbove: 4_096,
  /** Pending tasks of one run: the paper's unit has 380,000 live sandboxes with one timer each, and room above it. */
  pendingTasksMax: 8_000_000,
  /** Steps between two checkpoints of the trace hash: the finder runs twice and then looks at one such stretch. */
  checkpointSteps: 1_024,
} as const;
