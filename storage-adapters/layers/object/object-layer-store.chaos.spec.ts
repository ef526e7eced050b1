/** Layers in a bucket with three copies: the server that leads it is killed in the middle of a put and of a fetch. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import { busConnectionOptions, connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import { bucketStream } from '#bus/subjects.ts';
import { digestOfBytes } from '#test/contract/layer-store.contract.ts';
import { startNatsCluster, type TestNatsCluster } from '#test/helpers/nats-cluster.ts';
import { PosixLayerStore } from '../posix/mod.ts';
import { ObjectLayerStore } from './mod.ts';

const BUCKET = 'layers';
const FORMING_MS = 60_000;
const LAYER_BYTES = 48 * 1024 * 1024;

let cluster: TestNatsCluster;
let nc: NatsConnection;
let bus: JetStreamBus;
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'dsec-objects-'));
  cluster = await startNatsCluster();
  nc = await connect(busConnectionOptions(cluster.urls, 'test'));
  bus = connectJetStream(nc);
  for (const until = performance.now() + FORMING_MS; ; await delay(200)) {
    try {
      await bus.bucket(BUCKET).ensure(3);
      return;
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
    }
  }
}, FORMING_MS + 10_000);
afterAll(async () => {
  bus?.close();
  await nc?.close();
  await cluster?.stop();
  if (scratch) await rm(scratch, { recursive: true });
});

const open = async () => {
  const dir = await mkdtemp(join(scratch, 'node-'));
  const cache = new PosixLayerStore({ dir });
  return { dir, cache, store: await ObjectLayerStore.open({ bucket: bus.bucket(BUCKET), cache, clock: systemClock }) };
};
const streamInfo = async () => (await jetstreamManager(nc, { checkAPI: false })).streams.info(bucketStream(BUCKET));
/** SIGKILL; back when another leads. */
const killLeader = async (): Promise<void> => {
  const leader = (await streamInfo()).cluster?.leader;
  const server = cluster.serverNamed(leader ?? '');
  await server.kill();
  await server.restart();
};

test('both go on where they broke, and every byte is there', { timeout: 150_000 }, async () => {
  expect((await streamInfo()).config.num_replicas).toBe(3);
  const [one, two] = [await open(), await open()];
  const bytes = randomBytes(LAYER_BYTES);
  const file = join(scratch, 'layer');
  await writeFile(file, bytes);

  const putting = one.store.put(file);
  await expect.poll(async () => (await streamInfo()).state.messages, { timeout: 20_000, interval: 10 }).toBeGreaterThan(5);
  await killLeader();
  const { digest } = await putting;
  expect(digest).toBe(digestOfBytes(bytes));

  const fetching = two.store.ensureLocal(digest);
  while ((await readdir(join(two.dir, 'tmp'))).length === 0) await delay(1);
  await killLeader();
  await fetching;
  expect(await two.cache.verify(digest)).toBe('intact');
  await Promise.all([one.store.close(), two.store.close()]);
});
