/** Three servers, three copies of the stream, its leader killed again and again while many actors commit. */
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { eventsStream } from '#bus/subjects.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { startNatsCluster, type TestNatsCluster } from '#test/helpers/nats-cluster.ts';
import { busConnectionOptions, connectJetStream, type JetStreamBus } from './mod.ts';

const SHARD = '0' as Shard;
const ACTORS = 100;
const COMMITS_EACH = 100;
const KILLS = 3;
/** A cluster that has just started elects its leaders first. */
const FORMING_MS = 60_000;
/** The server killed last is still coming back when everything is written. */
const PATIENCE = { timeout: 60_000, interval: 100 };

let cluster: TestNatsCluster;
let nc: NatsConnection;
let bus: JetStreamBus;
beforeAll(async () => {
  cluster = await startNatsCluster();
  nc = await connect(busConnectionOptions(cluster.urls, 'test'));
  bus = connectJetStream(nc, { readFrom: 'leader', requestTimeoutMs: 1_000 });
  for (const until = performance.now() + FORMING_MS; ; await delay(200)) {
    try {
      await bus.ensureStreams({ shards: [SHARD], replicas: 3 });
      return;
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
    }
  }
}, FORMING_MS + 10_000);
afterAll(async () => {
  bus.close();
  await nc.close();
  await cluster.stop();
});

test('every acknowledged commit is there once and in its order', { timeout: 180_000 }, async () => {
  let committed = 0;
  let unknown = 0;
  const commit = async (log: EventLog, actor: number): Promise<void> => {
    let sequence = 0;
    for (let version = 1; version <= COMMITS_EACH; ) {
      const outcome = await log.append(anAppend(anAddress(SHARD, `sb-${actor}`), version, sequence));
      if (outcome.outcome === 'not_applied') throw new Error(JSON.stringify(outcome));
      if (outcome.outcome === 'unknown') {
        unknown += 1;
        await delay(50);
        continue;
      }
      sequence = outcome.sequence;
      version += 1;
      committed += 1;
    }
  };
  const killer = async (): Promise<void> => {
    for (let kill = 1; kill <= KILLS; kill += 1) {
      while (committed < (kill * ACTORS * COMMITS_EACH) / (KILLS + 1)) await delay(20);
      const server = cluster.serverNamed(await leader());
      await server.kill('SIGKILL');
      await delay(500);
      await server.restart();
    }
  };
  await Promise.all([killer(), ...Array.from({ length: ACTORS }, (_, actor) => commit(bus.eventLog, actor))]);

  expect(unknown).toBeGreaterThan(0);
  // A replica that is still catching up may show an older commit of an actor, never an unknown one.
  await vi.waitFor(async () => {
    const newest = await bus.eventLog.lastOfEach({ shard: SHARD });
    expect(newest.map(({ commit: { version } }) => version)).toEqual(Array.from({ length: ACTORS }, () => COMMITS_EACH));
  }, PATIENCE);
  for (let actor = 0; actor < ACTORS; actor += 1) {
    await vi.waitFor(async () => {
      const history = await bus.eventLog.history(anAddress(SHARD, `sb-${actor}`), 0, 2 * COMMITS_EACH);
      expect(history.map(({ commit: { version } }) => version)).toEqual(Array.from({ length: COMMITS_EACH }, (_, i) => i + 1));
    }, PATIENCE);
  }
});

/** Name of the server that leads the stream now; asks until there is one. */
const leader = async (): Promise<string> => {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (;;) {
    const name = await jsm.streams.info(eventsStream(SHARD)).then(
      (info) => info.cluster?.leader,
      () => undefined,
    );
    if (name) return name;
    await delay(50);
  }
};
