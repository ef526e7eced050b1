import type { Shard } from '#bus/ids.ts';

import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { ManualClock } from './clock.ts';
import { MemoryEventLog, type WriteFault } from './event-log.ts';

eventLogContract('memory', async ({ duplicateWindowMs }) => {
  const shard = '0' as Shard;
  const clock = new ManualClock(1_700_000_000_000);
  const republished: { subject: string; bytes: number }[] = [];
  let nextFault: WriteFault = 'none';
  const log = new MemoryEventLog({
    shards: [shard],
    clock,
    duplicateWindowMs,
    republish: (subject, data) => void republished.push({ subject, bytes: data.byteLength }),
    fault: () => {
      const fault = nextFault;
      nextFault = 'none';
      return fault;
    },
  });
  return {
    log,
    shard,
    elapse: async (ms) => clock.advance(ms),
    loseNextAnswer: async () => {
      nextFault = 'lost_answer';
    },
    outage: async (during) => {
      log.setConnected(false);
      await during();
      log.setConnected(true);
    },
    republished: () => republished,
    inject: async (address, data) => log.inject(address, data),
    close: async () => {},
  };
});
