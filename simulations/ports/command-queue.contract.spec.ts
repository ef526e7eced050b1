import { commandQueueContract } from '#test/contract/command-queue.contract.ts';
import { CommandQueueServer, SimCommandQueue } from './command-queue.ts';
import { DrivenTime, promisedQueue } from './testing/promised.ts';

commandQueueContract('simulated', async (options) => {
  const driven = new DrivenTime();
  const server = new CommandQueueServer(driven.server, options);
  return {
    queue: promisedQueue(driven, new SimCommandQueue(server, driven.link)),
    elapse: async (ms) => driven.elapse(ms),
    loseNextAnswer: async () => {
      driven.server.nextFault = () => {
        driven.server.nextFault = () => 'none';
        return 'lost_answer';
      };
    },
    outage: async (during) => {
      driven.server.up = false;
      await during();
      driven.server.up = true;
      server.serverBack();
    },
    close: async () => driven.stop(),
  };
});
