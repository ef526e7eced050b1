/** One consumer and one tail through everything that a bus does to them: killed server, stopped process, silent network. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { EdgeName, Shard } from '#bus/ids.ts';
import { edgeCommandFilter } from '#bus/subjects.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import type { JetStreamBus } from './mod.ts';

const SHARD = '0' as Shard;
const COUNT = 1_000;
const SERVER_AWAY_MS = 1_500;
const PROCESS_STOPPED_MS = 2_000;
/** Longer than it takes to notice a silent connection. */
const NETWORK_SILENT_MS = 11_000;
const PATIENCE = { timeout: 90_000, interval: 50 };

let bus: BusUnderTest;
beforeAll(async () => {
  bus = await startBusUnderTest();
});
afterAll(() => bus.stop());

/** Repeats what is unknown, as every writer must. */
const insist = async <T extends { outcome: string }>(attempt: () => Promise<T>): Promise<T> => {
  for (;;) {
    const outcome = await attempt();
    if (outcome.outcome !== 'unknown') return outcome;
    await delay(20);
  }
};

/** Nothing of this process runs for a while, timers and sockets included: what SIGSTOP does. */
const stopProcess = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const disasters = (): Record<number, () => void> => ({
  300: () =>
    void bus.server
      .kill('SIGKILL')
      .then(() => delay(SERVER_AWAY_MS))
      .then(() => bus.server.restart()),
  600: () => stopProcess(PROCESS_STOPPED_MS),
  800: () => {
    bus.proxy.freeze();
    void delay(NETWORK_SILENT_MS).then(() => bus.proxy.thaw());
  },
});

test('commands take effect once and a tail misses nothing, though the bus goes away three times and acknowledgements are dropped', {
  timeout: 120_000,
}, async () => {
  const { jetstream, reports, close } = await bus.connect({ ackWaitMs: 1_000 });
  const writer = await bus.connect();
  await jetstream.ensureStreams({ shards: [SHARD] });

  const effects = new Set<string>();
  let deliveries = 0;
  const pending = disasters();
  const consumer = await jetstream.commandQueue.consume(
    { name: 'edge-a', filter: edgeCommandFilter('edge-a' as EdgeName), fresh: true, maxInFlight: 64 },
    (delivery) => {
      deliveries += 1;
      effects.add(Buffer.from(delivery.data).toString('utf8')); // guarded by the effect's own key, as every handler must be
      if (deliveries % 10 !== 0) delivery.ack();
      const strike = pending[effects.size];
      delete pending[effects.size];
      strike?.();
    },
  );
  const versions: number[] = [];
  const tail = await jetstream.eventLog.tail(SHARD, 1, ({ commit }) => void versions.push(commit.version));

  await Promise.all([writeCommands(writer.jetstream), writeCommits(writer.jetstream)]);
  await vi.waitFor(() => expect(effects.size).toBe(COUNT), PATIENCE);
  await vi.waitFor(() => expect(versions).toHaveLength(COUNT), PATIENCE);
  expect(deliveries).toBeGreaterThan(COUNT);
  expect(versions).toEqual(Array.from({ length: COUNT }, (_, i) => i + 1));
  expect(Object.keys(pending)).toEqual([]);
  expect(reports.map(({ event }) => event)).toContain('consumer_reopened');
  await Promise.all([tail.close(), consumer.close()]);
  await Promise.all([writer.close(), close()]);
});

const writeCommands = async ({ commandQueue }: JetStreamBus): Promise<void> => {
  for (let i = 0; i < COUNT; i += 1) {
    const outcome = await insist(() => commandQueue.enqueue('dsec.cmd.edge.edge-a._', `alpha:c${i}`, Buffer.from(`c${i}`)));
    expect(outcome.outcome).toBe('applied');
  }
};

const writeCommits = async ({ eventLog }: JetStreamBus): Promise<void> => {
  const actor = anAddress(SHARD, 'sb-outage');
  let sequence = 0;
  for (let version = 1; version <= COUNT; version += 1) {
    const request = anAppend(actor, version, sequence);
    const outcome = await insist(() => eventLog.append(request));
    if (outcome.outcome !== 'applied') throw new Error(JSON.stringify(outcome));
    sequence = outcome.sequence;
  }
};
