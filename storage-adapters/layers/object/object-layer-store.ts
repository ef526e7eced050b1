/**
 * Layer store in a bucket of JetStream's object store, with a directory of this machine in front: what is mounted lies there, what
 * was fetched or put stays there for the next one, within a bound. @paper §5.1
 *
 * A put is durable in the bucket when it resolves. Captures for forks (`volatile`) stay on the node, whose sandboxes alone stand on
 * them, until somebody renews or names them.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Clock } from '#actors/ports/clock.ts';
import type { DeleteOutcome, LayerInfo, LayerStore, PutOptions, VerifyOutcome } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { ObjectBucket, StoredObject } from '../../jetstream/mod.ts';
import type { PosixLayerStore } from '../posix/mod.ts';
import type { CacheRoom } from './cache-room.ts';
import { BucketCatalogue } from './catalogue.ts';
import { ObjectImageNames } from './names.ts';
import { persist } from './persist.ts';
import { type TransferReport, Transfers } from './transfers.ts';

export type ObjectLayerStoreOptions = {
  readonly bucket: ObjectBucket;
  /** Copies on this machine. Its names are not used. */
  readonly cache: PosixLayerStore;
  /** Bounds the cache; without it nothing is ever evicted. */
  readonly room?: CacheRoom;
  readonly clock: Pick<Clock, 'now'>;
  readonly report?: (line: TransferReport) => void;
};

export class ObjectLayerStore implements LayerStore {
  readonly names: ObjectImageNames;
  readonly scratchDir: string;
  readonly #bucket: ObjectBucket;
  readonly #cache: PosixLayerStore;
  readonly #room: CacheRoom | undefined;
  readonly #catalogue: BucketCatalogue;
  readonly #transfers: Transfers;
  readonly #fetching = new Map<LayerDigest, Promise<void>>();
  /** Uploads of one layer follow each other: the second finds it there. */
  readonly #uploading = new Map<LayerDigest, Promise<unknown>>();

  private constructor({ bucket, cache, room, clock, report = () => {} }: ObjectLayerStoreOptions) {
    this.#bucket = bucket;
    this.#cache = cache;
    this.#room = room;
    this.#catalogue = new BucketCatalogue(bucket);
    this.#transfers = new Transfers(bucket, this.#catalogue, clock, report);
    this.names = new ObjectImageNames(bucket, this.#catalogue, clock, (digest) => this.renew(digest));
    this.scratchDir = cache.scratchDir;
  }

  /** Resolves when everything that the bucket holds is known. BUS_UNAVAILABLE. */
  static async open(options: ObjectLayerStoreOptions): Promise<ObjectLayerStore> {
    const store = new ObjectLayerStore(options);
    try {
      await persist({ settle: (signal) => options.bucket.settle(signal) }, undefined, () => store.catchUp());
      return store;
    } catch (thrown) {
      await store.close();
      throw thrown;
    }
  }

  async put(file: string, options: PutOptions = {}): Promise<LayerInfo> {
    const local = await this.#cache.put(file, options);
    if (options.volatile) return local;
    try {
      return infoOf(await this.#pinned(local.digest, () => this.#upload(local.digest, options.signal)));
    } finally {
      await this.#room?.trim();
    }
  }

  has(digest: LayerDigest): boolean {
    return this.#catalogue.get(digest) !== undefined || this.#cache.has(digest);
  }

  isLocal(digest: LayerDigest): boolean {
    return this.#cache.has(digest);
  }

  pathOf(digest: LayerDigest): string {
    return this.#cache.pathOf(digest);
  }

  async ensureLocal(digest: LayerDigest, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    if (this.#cache.has(digest)) return this.#cache.touch(digest);
    const running = this.#fetching.get(digest) ?? this.#fetch(digest).finally(() => this.#fetching.delete(digest));
    this.#fetching.set(digest, running);
    await abortable(running, signal); // whoever else waits for it goes on
  }

  catchUp(): Promise<void> {
    return this.#catalogue.catchUp();
  }

  async read(digest: LayerDigest): Promise<Readable> {
    if (this.#cache.has(digest)) return this.#cache.read(digest);
    return Readable.from(this.#transfers.bytesOf(digest, await this.#known(digest)), { objectMode: false });
  }

  /** What the bucket holds, and what lies here alone. */
  async list(): Promise<LayerInfo[]> {
    await this.catchUp();
    const remote = [...this.#catalogue.values()].filter(({ name }) => LayerDigest.safeParse(name).success).map(infoOf);
    const captures = (await this.#cache.list()).filter(({ digest, volatile }) => volatile && !this.#catalogue.get(digest));
    return [...remote, ...captures].sort((a, b) => (a.digest < b.digest ? -1 : 1));
  }

  async renew(digest: LayerDigest): Promise<boolean> {
    return this.#pinned(digest, async () => {
      const isHere = await this.#cache.renew(digest);
      if (isHere) await this.#upload(digest); // renews it where it is, stores it where it was only here
      return isHere || (await this.#transfers.renew(digest)) !== null;
    });
  }

  async delete(digest: LayerDigest, options: { readonly storedBefore?: TimestampMs } = {}): Promise<DeleteOutcome> {
    const { storedBefore } = options;
    const outcome = await this.#transfers.delete(digest, ({ writtenAt }) => storedBefore !== undefined && writtenAt >= storedBefore);
    if (outcome === 'kept') return 'kept';
    const local = await this.#cache.delete(digest, outcome === 'deleted' ? {} : options);
    return outcome === 'deleted' ? 'deleted' : local;
  }

  /** The copy here and the one in the bucket. */
  async verify(digest: LayerDigest): Promise<VerifyOutcome> {
    const local = await this.#cache.verify(digest);
    const object = await this.#transfers.infoOf(digest);
    if (local === 'corrupt' || !object) return local;
    const hash = createHash('sha256');
    try {
      for await (const chunk of this.#transfers.bytesOf(digest, object)) hash.update(chunk);
    } catch (thrown) {
      if (thrown instanceof DsecError && thrown.code === 'LAYER_NOT_FOUND') return 'corrupt'; // chunks are missing
      throw thrown;
    }
    return `sha256:${hash.digest('hex')}` === digest ? 'intact' : 'corrupt';
  }

  /** What dead writers left in the bucket, if it was there at the call before already; and copies beyond the bound. */
  async sweep(): Promise<number> {
    await this.#room?.trim();
    return this.#transfers.sweep();
  }

  async close(): Promise<void> {
    await this.#catalogue.close();
  }

  async #fetch(digest: LayerDigest): Promise<void> {
    const object = await this.#known(digest);
    const receive = async (): Promise<void> => void (await this.#cache.receive(digest, this.#transfers.bytesOf(digest, object)));
    await (this.#room ? this.#room.with(digest, object.sizeBytes, receive) : receive());
  }

  async #known(digest: LayerDigest): Promise<StoredObject> {
    const object = await this.#transfers.infoOf(digest);
    if (object) return object;
    throw DsecError.of('LAYER_NOT_FOUND', `layer ${digest} is not in store ${this.#bucket.name}; build or import the image again`, { details: { digest } });
  }

  async #upload(digest: LayerDigest, signal?: AbortSignal): Promise<StoredObject> {
    const before = this.#uploading.get(digest) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(() => this.#transfers.upload(digest, this.#cache.pathOf(digest), signal));
    this.#uploading.set(digest, mine);
    try {
      return await mine;
    } finally {
      if (this.#uploading.get(digest) === mine) this.#uploading.delete(digest);
    }
  }

  #pinned<T>(digest: LayerDigest, work: () => Promise<T>): Promise<T> {
    return this.#room ? this.#room.pinned(digest, work) : work();
  }
}

const infoOf = ({ name, sizeBytes, writtenAt }: StoredObject): LayerInfo => ({
  digest: name as LayerDigest,
  sizeBytes,
  storedAt: writtenAt as TimestampMs,
});

const abortable = (work: Promise<void>, signal: AbortSignal | undefined): Promise<void> => {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const cancel = (): void => reject(DsecError.of('CANCELLED', 'the fetch of a layer is not waited for any more'));
    if (signal.aborted) cancel();
    signal.addEventListener('abort', cancel, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', cancel));
  });
};
