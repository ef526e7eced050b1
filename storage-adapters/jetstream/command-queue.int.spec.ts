import { afterAll, beforeAll } from 'vitest';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import { commandQueueContract } from '#test/contract/command-queue.contract.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';

let bus: BusUnderTest;
beforeAll(async () => {
  bus = await startBusUnderTest();
});
afterAll(() => bus.stop());

commandQueueContract('JetStream', async ({ duplicateWindowMs, ackWaitMs }) => {
  const { jetstream, close } = await bus.connect({ ackWaitMs });
  await jetstream.ensureStreams({ shards: [], duplicateWindowMs });
  await bus.admin.empty(COMMANDS_STREAM);
  return {
    queue: jetstream.commandQueue,
    elapse: (ms) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    loseNextAnswer: () => bus.loseNextAnswer(COMMANDS_STREAM),
    outage: (during) => bus.outage(jetstream, during),
    close,
  };
});
