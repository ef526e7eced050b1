import type { Shard } from '#bus/ids.ts';
import { outSubject } from '#bus/subjects.ts';
import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { EventStore } from './event-store.ts';
import { DrivenTime, PromisedEventLog } from './testing/promised.ts';

eventLogContract('simulated', async ({ duplicateWindowMs }) => {
  const shard = '0' as Shard;
  const driven = new DrivenTime();
  const store = new EventStore({ shards: [shard], keeping: 'exact', duplicateWindowMs });
  const republished: { subject: string; bytes: number }[] = [];
  store.observe(({ address, body }) => {
    if (body === null || body instanceof Uint8Array) republished.push({ subject: outSubject(address), bytes: body?.byteLength ?? 0 });
  });
  const log = new PromisedEventLog(driven, store);
  return {
    log,
    shard,
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
      log.wakeTails();
    },
    republished: () => republished,
    inject: async (address, data) => store.inject(driven.server.nowMs, address, data),
    close: async () => driven.stop(),
  };
});
