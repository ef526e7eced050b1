import { commandQueueContract } from '#test/contract/command-queue.contract.ts';
import { ManualClock } from './clock.ts';
import { MemoryCommandQueue } from './command-queue.ts';
import type { WriteFault } from './event-log.ts';

commandQueueContract('memory', async (options) => {
  const clock = new ManualClock(1_700_000_000_000);
  let nextFault: WriteFault = 'none';
  const queue = new MemoryCommandQueue({
    clock,
    ...options,
    fault: () => {
      const fault = nextFault;
      nextFault = 'none';
      return fault;
    },
  });
  return {
    queue,
    elapse: async (ms) => clock.advance(ms),
    loseNextAnswer: async () => {
      nextFault = 'lost_answer';
    },
    outage: async (during) => {
      queue.setConnected(false);
      await during();
      queue.setConnected(true);
    },
    close: async () => {},
  };
});
