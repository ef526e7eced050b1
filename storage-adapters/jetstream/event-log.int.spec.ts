import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { commitSubject, eventsStream, outFilter } from '#bus/subjects.ts';
import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import type { ReadFrom } from './mod.ts';

/** A server for each way of reading; on it a shard of its own for each test, never used before. */
const contractReadingFrom = (name: string, readFrom: ReadFrom): void => {
  describe(name, () => {
    let bus: BusUnderTest;
    let shardsUsed = 0;
    beforeAll(async () => {
      bus = await startBusUnderTest();
    });
    afterAll(() => bus.stop());

    eventLogContract(name, async ({ duplicateWindowMs }) => {
      const shard = shardsUsed.toString(36) as Shard;
      shardsUsed += 1;
      const { jetstream, close } = await bus.connect({ readFrom });
      await jetstream.ensureStreams({ shards: [shard], duplicateWindowMs });
      const witness = await watchOut(bus.serverUrl, shard);
      return {
        log: jetstream.eventLog,
        shard,
        elapse: (ms) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
        loseNextAnswer: () => bus.loseNextAnswer(eventsStream(shard)),
        outage: (during) => bus.outage(jetstream, during),
        republished: () => witness.seen,
        inject: (address, data) => bus.admin.store(commitSubject(address), data),
        close: async () => {
          await witness.nc.close();
          await close();
        },
      };
    });
  });
};

const watchOut = async (servers: string, shard: Shard): Promise<{ seen: { subject: string; bytes: number }[]; nc: NatsConnection }> => {
  const nc = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  const seen: { subject: string; bytes: number }[] = [];
  nc.subscribe(outFilter({ shard }), { callback: (_, message) => void seen.push({ subject: message.subject, bytes: message.data.byteLength }) });
  await nc.flush();
  return { seen, nc };
};

contractReadingFrom('JetStream, read from any replica', 'direct');
contractReadingFrom('JetStream, read from the leader', 'leader');
