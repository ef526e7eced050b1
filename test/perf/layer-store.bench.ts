/**
 * Layers through the bus: MiB per second of a put and of a fetch, into a bucket with one copy and with three (three servers here), beside
 * the same put into a directory in the same run, and what the process grows by meanwhile. `-- <MiB>`: size of the layer.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { systemClock } from '#actors/ports/clock.ts';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import { busConnectionOptions, connectJetStream } from '#adapters/jetstream/mod.ts';
import { ObjectLayerStore } from '#adapters/layers/object/mod.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { startNatsCluster } from '#test/helpers/nats-cluster.ts';
import { startNatsServer } from '#test/helpers/nats-server.ts';
import { runBench, timed } from './harness.ts';

const [LAYER_MIB = 500] = process.argv.slice(2).map(Number);
const MIB = 2 ** 20;
const FORMING_MS = 60_000;
const SAMPLE_MS = 20;

const makeLayer = async (path: string): Promise<void> => {
  const file = createWriteStream(path);
  for (let i = 0; i < LAYER_MIB; i += 1) if (!file.write(randomBytes(MIB))) await once(file, 'drain');
  file.end();
  await finished(file);
};

/** What the process has grown by at most while it worked. */
const growth = async <T>(work: () => Promise<T>): Promise<{ readonly mib: number; readonly value: T }> => {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, SAMPLE_MS);
  try {
    return { value: await work(), mib: (most - before) / MIB };
  } finally {
    clearInterval(timer);
  }
};

await runBench('layer-store', {}, async (say) => {
  const dir = await mkdtemp(join(tmpdir(), 'dsec-layer-bench-'));
  const layer = join(dir, 'layer');
  let grownMib = 0;
  const posix = async (): Promise<PosixLayerStore> => new PosixLayerStore({ dir: await mkdtemp(join(dir, 'node-')) });
  const rate = async (what: string, work: () => Promise<unknown>): Promise<number> => {
    const { value, mib } = await growth(() => timed(work));
    grownMib = Math.max(grownMib, mib);
    const mibPerS = LAYER_MIB / (value.ms / 1_000);
    say(`${what}: ${Math.round(mibPerS)} MiB/s, process grown by ${Math.round(mib)} MiB`);
    return mibPerS;
  };
  const throughBucket = async (urls: string[], replicas: number): Promise<{ put: number; get: number }> => {
    const nc = await connect(busConnectionOptions(urls, 'bench'));
    const bus = connectJetStream(nc);
    const ensure = () => bus.bucket('layers').ensure(replicas);
    for (const until = performance.now() + FORMING_MS; ; await delay(200)) {
      if (
        await ensure().then(
          () => true,
          (thrown: unknown) => performance.now() > until && Promise.reject(thrown),
        )
      )
        break;
    }
    const open = async (): Promise<LayerStore & { close(): Promise<void> }> =>
      ObjectLayerStore.open({ bucket: bus.bucket('layers'), cache: await posix(), clock: systemClock });
    const [one, two] = [await open(), await open()];
    try {
      const kept = await posix();
      const { digest } = await kept.put(layer); // hashing and the node's own copy are the directory's figure
      const put = await rate(`put, ${replicas} copies`, () => one.put(layer));
      const get = await rate(`fetch, ${replicas} copies`, () => two.ensureLocal(digest));
      return { put, get };
    } finally {
      await Promise.all([one.close(), two.close()]);
      bus.close();
      await nc.close();
    }
  };
  try {
    await makeLayer(layer);
    const directory = await rate('put, directory', async () => (await posix()).put(layer));
    const server = await startNatsServer();
    const one = await throughBucket([server.url], 1).finally(() => server.stop());
    const cluster = await startNatsCluster();
    const three = await throughBucket(cluster.urls, 3).finally(() => cluster.stop());
    return { putDirectory: directory, putR1: one.put, fetchR1: one.get, putR3: three.put, fetchR3: three.get, grownMib };
  } finally {
    await rm(dir, { recursive: true });
  }
});
