/** The object adapter against its contract, and what it alone promises: outages, dead writers, other processes, a bounded cache. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { Objm } from '@nats-io/obj';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { digestOfBytes, layerStoreContract } from '#test/contract/layer-store.contract.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { PosixLayerStore } from '../posix/mod.ts';
import { CacheRoom, ObjectLayerStore } from './mod.ts';

let bus: BusUnderTest;
let connection: Awaited<ReturnType<BusUnderTest['connect']>>;
let scratch: string;
let buckets = 0;
beforeAll(async () => {
  bus = await startBusUnderTest();
  connection = await bus.connect();
  scratch = await mkdtemp(join(tmpdir(), 'dsec-objects-'));
});
afterAll(async () => {
  await connection?.close();
  await bus?.stop();
  if (scratch) await rm(scratch, { recursive: true });
});

type Opened = { readonly store: ObjectLayerStore; readonly cache: PosixLayerStore; readonly dir: string };
type CacheBound = { readonly maxBytes: number; readonly inUse?: () => ReadonlySet<LayerDigest>; readonly freeBytes?: () => number };

const freshBucket = async (): Promise<string> => {
  buckets += 1;
  const name = `layers-${buckets}`;
  await connection.jetstream.bucket(name).ensure(1);
  return name;
};
const openStore = async (name: string, bound?: CacheBound): Promise<Opened> => {
  const dir = await mkdtemp(join(scratch, 'node-'));
  const cache = new PosixLayerStore({ dir });
  const { inUse = () => new Set<LayerDigest>(), freeBytes = () => Number.MAX_SAFE_INTEGER } = bound ?? {};
  const room = bound && new CacheRoom({ cache, floorBytes: 0, inUse, freeBytes, maxBytes: bound.maxBytes });
  return {
    store: await ObjectLayerStore.open({ bucket: connection.jetstream.bucket(name), cache, clock: systemClock, ...(room ? { room } : {}) }),
    cache,
    dir,
  };
};
const fileOf = async (bytes: Uint8Array): Promise<string> => {
  const path = join(scratch, randomBytes(6).toString('hex'));
  await writeFile(path, bytes);
  return path;
};
const recordOf = (name: string, digest: LayerDigest) =>
  ({ name: name as ImageName, digest, kind: 'base', sizeBytes: 1, createdAt: 1 as TimestampMs, source: 'test' }) as const;
const subjectsOf = (name: string): Promise<string[]> =>
  bus.admin.use(async (jsm) => Object.keys((await jsm.streams.info(`OBJ_${name}`, { subjects_filter: '>' })).state.subjects ?? {}));
const chunkSubjects = async (name: string): Promise<string[]> => (await subjectsOf(name)).filter((subject) => subject.includes('.C.'));

layerStoreContract('object', async () => {
  const { store } = await openStore(await freshBucket());
  return { store, close: () => store.close() };
});

describe('two nodes and one bucket', () => {
  test('what one puts and names, the other knows after catching up, fetches once and has here', async () => {
    const name = await freshBucket();
    const [one, two] = [await openStore(name), await openStore(name)];
    const bytes = randomBytes(2_000_000);
    const { digest } = await one.store.put(await fileOf(bytes));
    await one.store.names.set(recordOf('shared', digest));

    await two.store.catchUp();
    expect(two.store.names.lookup('shared' as ImageName)?.digest).toBe(digest);
    expect([two.store.has(digest), two.store.isLocal(digest)]).toEqual([true, false]);
    expect(() => two.store.pathOf(digest)).toThrowError(expect.objectContaining({ code: 'LAYER_NOT_FOUND' }));
    expect(Buffer.concat(await (await two.store.read(digest)).toArray()).equals(bytes)).toBe(true);
    expect(two.store.isLocal(digest)).toBe(false);
    await Promise.all([1, 2, 3].map(() => two.store.ensureLocal(digest)));
    expect(two.store.isLocal(digest)).toBe(true);
    expect(await two.cache.verify(digest)).toBe('intact');

    expect(await one.store.delete(digest)).toBe('deleted');
    expect(await chunkSubjects(name)).toEqual([]);
    await two.store.catchUp();
    expect(await two.store.list()).toEqual([]);
    await Promise.all([one.store.close(), two.store.close()]);
  });

  test("NATS' own client reads what is stored", async () => {
    const name = await freshBucket();
    const { store } = await openStore(name);
    const bytes = randomBytes(700_000);
    const { digest } = await store.put(await fileOf(bytes));
    const official = await new Objm(jetstream(connection.nc)).open(name);
    expect(Buffer.from((await official.getBlob(digest)) ?? []).equals(bytes)).toBe(true);
    await store.close();
  });

  test('bytes that are not those of their digest are refused and leave nothing', async () => {
    const name = await freshBucket();
    const [one, two] = [await openStore(name), await openStore(name)];
    const { digest } = await one.store.put(await fileOf(randomBytes(400_000)));
    const [subject = ''] = await chunkSubjects(name);
    await bus.admin.use(async (jsm, nc) => {
      await jsm.streams.purge(`OBJ_${name}`, { filter: subject });
      for (const size of [262_144, 137_856]) await nc.request(subject, randomBytes(size));
    });
    await expect(two.store.ensureLocal(digest)).rejects.toMatchObject({ code: 'LAYER_NOT_FOUND' });
    expect(two.store.isLocal(digest)).toBe(false);
    expect(await readdir(join(two.dir, 'tmp'))).toEqual([]);
    expect(await two.store.verify(digest)).toBe('corrupt');
    await Promise.all([one.store.close(), two.store.close()]);
  });

  test('a capture for forks stays on its node until it is named', async () => {
    const name = await freshBucket();
    const { store } = await openStore(name);
    const { digest } = await store.put(await fileOf(randomBytes(1_000)), { volatile: true });
    expect(await subjectsOf(name)).toEqual([]);
    expect(await store.list()).toMatchObject([{ digest, volatile: true }]);
    await store.names.set(recordOf('kept', digest));
    expect((await store.list()).map((layer) => [layer.digest, layer.volatile])).toEqual([[digest, undefined]]);
    expect(await chunkSubjects(name)).toHaveLength(1);
    await store.close();
  });
});

describe('outages', () => {
  /** Resolves when a chunk of the bucket is stored that was not there before. */
  const moreChunks = async (name: string, than: number): Promise<void> => {
    while ((await bus.admin.lastSequence(`OBJ_${name}`)) <= than) await delay(2);
  };

  test('the bus is killed in the middle of a put and comes back: the put completes, the bytes are right', { timeout: 60_000 }, async () => {
    const name = await freshBucket();
    const [one, two] = [await openStore(name), await openStore(name)];
    const bytes = randomBytes(64 * 1024 * 1024);
    const putting = one.store.put(await fileOf(bytes), { consume: true });
    await moreChunks(name, 5);
    await bus.outage(connection.jetstream, () => delay(300));
    const { digest } = await putting;
    expect(digest).toBe(digestOfBytes(bytes));
    expect(await chunkSubjects(name)).toHaveLength(1);
    await two.store.ensureLocal(digest);
    expect(await two.cache.verify(digest)).toBe('intact');
    await Promise.all([one.store.close(), two.store.close()]);
  });

  test('the bus is killed in the middle of a fetch and comes back: the fetch goes on', { timeout: 60_000 }, async () => {
    const name = await freshBucket();
    const [one, two] = [await openStore(name), await openStore(name)];
    const { digest } = await one.store.put(await fileOf(randomBytes(64 * 1024 * 1024)), { consume: true });
    const fetching = two.store.ensureLocal(digest);
    while ((await readdir(join(two.dir, 'tmp'))).length === 0) await delay(1);
    expect(two.store.isLocal(digest)).toBe(false);
    await bus.outage(connection.jetstream, () => delay(300));
    await fetching;
    expect(await two.cache.verify(digest)).toBe('intact');
    // and whoever follows the bucket follows it still
    await one.store.names.set(recordOf('after', digest));
    await two.store.catchUp();
    expect(two.store.names.lookup('after' as ImageName)?.digest).toBe(digest);
    await Promise.all([one.store.close(), two.store.close()]);
  });

  test('a put that is given up while the bus is away is cancelled, and nothing of it is reached; the next one stores it', { timeout: 60_000 }, async () => {
    const name = await freshBucket();
    const { store } = await openStore(name);
    const file = await fileOf(randomBytes(32 * 1024 * 1024));
    const given = new AbortController();
    const putting = store.put(file, { signal: given.signal });
    putting.catch(() => undefined); // looked at below
    await moreChunks(name, 5);
    await bus.outage(connection.jetstream, async () => {
      given.abort();
      await expect(putting).rejects.toMatchObject({ code: 'CANCELLED' });
    });
    expect(await store.list()).toEqual([]);
    const { digest } = await store.put(file);
    expect((await store.list()).map((layer) => layer.digest)).toEqual([digest]);
    expect(await store.verify(digest)).toBe('intact');
    await store.close();
  });

  test('what a dead writer left is reached by nobody, and is swept; what is stored stays', async () => {
    const name = await freshBucket();
    const bucket = connection.jetstream.bucket(name);
    const { store } = await openStore(name);
    const { digest } = await store.put(await fileOf(randomBytes(300_000)));
    const dead = bucket.newUpload();
    const first = await bucket.writeChunk(dead, 0, randomBytes(1_000), 0);
    expect(await bucket.writeChunk(dead, 0, randomBytes(1_000), 0)).toBe(first); // sent again after a lost answer
    expect((await store.list()).map((layer) => layer.digest)).toEqual([digest]);
    expect(await store.sweep()).toBe(0);
    expect(await store.sweep()).toBe(1);
    expect(await chunkSubjects(name)).toHaveLength(1);
    expect(await store.verify(digest)).toBe('intact');
    await store.close();
  });
});

describe('the cache on a node', () => {
  const MIB = 1024 * 1024;

  test('stays within its bound; what was used longest ago goes, what is in use never', async () => {
    const name = await freshBucket();
    const held = new Set<LayerDigest>();
    const [one, two] = [await openStore(name), await openStore(name, { maxBytes: 3 * MIB, inUse: () => held })];
    const digests: LayerDigest[] = [];
    for (let i = 0; i < 5; i += 1) digests.push((await one.store.put(await fileOf(randomBytes(MIB)))).digest);
    const here = (): number[] => digests.flatMap((digest, i) => (two.store.isLocal(digest) ? [i] : []));
    const ensure = async (i: number): Promise<void> => {
      await two.store.ensureLocal(digests[i] as LayerDigest);
      await delay(25); // uses have to differ by a tick of the file system's clock to have an order
    };
    for (const i of [0, 1, 2]) await ensure(i);
    await ensure(0);
    await ensure(3);
    expect(here()).toEqual([0, 2, 3]);
    held.add(digests[2] as LayerDigest);
    await ensure(4);
    expect(here()).toEqual([2, 3, 4]);
    for (const i of [3, 4]) held.add(digests[i] as LayerDigest);
    await expect(two.store.ensureLocal(digests[0] as LayerDigest)).rejects.toMatchObject({ code: 'NO_SPACE' });
    expect(here()).toEqual([2, 3, 4]);
    held.clear();
    await Promise.all([0, 1].map((i) => two.store.ensureLocal(digests[i] as LayerDigest)));
    expect(here()).toHaveLength(3);
    await Promise.all([one.store.close(), two.store.close()]);
  });

  test('a put of more than the bound is stored, and leaves the node when nobody uses it', async () => {
    const name = await freshBucket();
    const { store, cache } = await openStore(name, { maxBytes: MIB });
    const { digest } = await store.put(await fileOf(randomBytes(2 * MIB)));
    expect([store.has(digest), cache.has(digest)]).toEqual([true, false]);
    await expect(store.ensureLocal(digest)).rejects.toMatchObject({ code: 'NO_SPACE' });
    await store.close();
  });

  test("the disk's free space bounds it as well", async () => {
    const name = await freshBucket();
    const [one, two] = [await openStore(name), await openStore(name, { maxBytes: 100 * MIB, freeBytes: () => MIB / 2 })];
    const { digest } = await one.store.put(await fileOf(randomBytes(MIB)));
    await expect(two.store.ensureLocal(digest)).rejects.toMatchObject({ code: 'NO_SPACE' });
    await Promise.all([one.store.close(), two.store.close()]);
  });
});
