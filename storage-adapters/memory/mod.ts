/** Both ports of the bus in memory: for tests of what stands above them, and as the ground of the simulation. */
export { ManualClock, type SchedulingClock } from './clock.ts';
export { MemoryCommandQueue, type MemoryCommandQueueOptions } from './command-queue.ts';
export { MemoryEventLog, type MemoryEventLogOptions, type WriteFault } from './event-log.ts';
export { MEMORY_LIMITS } from './limits.ts';
