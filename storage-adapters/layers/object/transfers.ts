/**
 * Layers on their way to the bucket and from it, in chunks; each goes on over an outage where it broke.
 *
 * An upload has a name of its own, and the layer's info points at it only after the last chunk is stored. So a writer that dies leaves
 * chunks that nothing points at (INV-LAYER); `sweep` removes them. What arrives is compared with its digest by whoever stores it.
 */
import { open } from 'node:fs/promises';
import type { Clock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { ObjectBucket, StoredObject } from '../../jetstream/mod.ts';
import type { BucketCatalogue } from './catalogue.ts';
import { OBJECT_LAYER_LIMITS } from './limits.ts';
import { type Persist, persist } from './persist.ts';

export type TransferReport = {
  readonly event: 'layer.uploading' | 'layer.uploaded' | 'layer.fetching' | 'layer.fetched';
  readonly digest: LayerDigest;
  readonly doneBytes: number;
};

export class Transfers {
  readonly #bucket: ObjectBucket;
  readonly #catalogue: BucketCatalogue;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #how: Persist;
  readonly #report: (line: TransferReport) => void;
  #orphansBefore: ReadonlyMap<string, number> = new Map();

  constructor(bucket: ObjectBucket, catalogue: BucketCatalogue, clock: Pick<Clock, 'now'>, report: (line: TransferReport) => void) {
    this.#bucket = bucket;
    this.#catalogue = catalogue;
    this.#clock = clock;
    this.#how = { settle: (signal) => bucket.settle(signal) };
    this.#report = report;
  }

  /** The layer's info in the bucket, exact; null when there is none. */
  async infoOf(digest: LayerDigest, signal?: AbortSignal): Promise<StoredObject | null> {
    const object = await persist(this.#how, signal, () => this.#bucket.last(digest));
    if (object) this.#catalogue.enter(object);
    return object && !object.deleted ? object : null;
  }

  /** As if it were written now; null when it is not there. */
  async renew(digest: LayerDigest, signal?: AbortSignal): Promise<StoredObject | null> {
    for (let attempt = 0; attempt < OBJECT_LAYER_LIMITS.conflicts; attempt += 1) {
      const object = await this.infoOf(digest, signal);
      if (!object) return null;
      const renewed = { ...object, writtenAt: Math.max(object.writtenAt, this.#clock.now()) };
      const sequence = await persist(this.#how, signal, () => this.#bucket.write({ ...renewed, sha256: hexOf(digest) }, object.sequence));
      if (sequence !== 'conflict') return this.#entered({ ...renewed, sequence });
    }
    throw contended(digest);
  }

  /** Stores the file's bytes under the digest, or renews what is there. */
  async upload(digest: LayerDigest, file: string, signal?: AbortSignal): Promise<StoredObject> {
    const renewed = await this.renew(digest, signal);
    if (renewed) return renewed;
    const upload = this.#bucket.newUpload();
    try {
      const sent = await this.#send(digest, upload, file, signal);
      const last = await persist(this.#how, signal, () => this.#bucket.last(digest));
      if (!last || last.deleted) {
        const object = { name: digest, upload, ...sent, writtenAt: this.#clock.now(), metadata: {} };
        const sequence = await persist(this.#how, signal, () => this.#bucket.write({ ...object, sha256: hexOf(digest) }, last?.sequence ?? 0));
        if (sequence !== 'conflict') return this.#entered({ ...object, deleted: false, sequence });
      }
      // Refused: somebody else has stored it meanwhile. Or our own write was stored and its answer lost; then it must not be purged.
      const theirs = await this.renew(digest, signal);
      if (theirs?.upload !== upload) await this.#bucket.purge(upload).catch(() => {}); // the sweep removes what stays
      if (theirs) return theirs;
      throw contended(digest);
    } catch (thrown) {
      await this.#abandon(digest, upload);
      throw thrown;
    }
  }

  /** Its bytes, in order. LAYER_NOT_FOUND when it goes meanwhile. */
  async *bytesOf(digest: LayerDigest, object: StoredObject, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    let sequence = 0;
    let doneBytes = 0;
    let toldBytes = 0;
    for (let index = 0; index < object.chunks; index += 1) {
      const chunk = await persist(this.#how, signal, () => this.#bucket.chunkAfter(object.upload, sequence));
      if (!chunk) throw DsecError.of('LAYER_NOT_FOUND', `layer ${digest} was removed from the store while it was read`, { details: { digest } });
      sequence = chunk.sequence;
      doneBytes += chunk.data.byteLength;
      if (doneBytes - toldBytes >= OBJECT_LAYER_LIMITS.reportBytes) {
        toldBytes = doneBytes;
        this.#report({ event: 'layer.fetching', digest, doneBytes });
      }
      yield chunk.data;
    }
    this.#report({ event: 'layer.fetched', digest, doneBytes });
  }

  /** Removes the layer, unless `isKept` says so of its info. */
  async delete(digest: LayerDigest, isKept: (object: StoredObject) => boolean): Promise<'deleted' | 'absent' | 'kept'> {
    for (let attempt = 0; attempt < OBJECT_LAYER_LIMITS.conflicts; attempt += 1) {
      const object = await this.infoOf(digest);
      if (!object) return 'absent';
      if (isKept(object)) return 'kept';
      const sequence = await persist(this.#how, undefined, () => this.#bucket.delete(object, this.#clock.now()));
      if (sequence === 'conflict') continue;
      this.#catalogue.enter({ ...object, deleted: true, sequence });
      await persist(this.#how, undefined, () => this.#bucket.purge(object.upload));
      return 'deleted';
    }
    throw contended(digest);
  }

  /** Removes uploads of writers that died: nothing points at them, and nobody has added to them since the call before. Returns how many. */
  async sweep(): Promise<number> {
    const before = this.#orphansBefore;
    this.#orphansBefore = await this.#orphans();
    const dead = [...this.#orphansBefore].filter(([upload, chunk]) => before.get(upload) === chunk);
    for (const [upload] of dead) await this.#bucket.purge(upload);
    return dead.length;
  }

  /** Uploads without an info, and the newest chunk of each. */
  async #orphans(): Promise<Map<string, number>> {
    const uploads = await this.#bucket.uploads();
    await this.#catalogue.catchUp(); // after the uploads: whatever of them has become a layer meanwhile is known by now
    const used = new Set([...this.#catalogue.values()].map(({ upload }) => upload));
    const orphans = new Map<string, number>();
    for (const upload of uploads) if (!used.has(upload)) orphans.set(upload, await this.#bucket.lastChunkOf(upload));
    return orphans;
  }

  async #send(digest: LayerDigest, upload: string, file: string, signal: AbortSignal | undefined): Promise<{ sizeBytes: number; chunks: number }> {
    const source = await open(file, 'r');
    try {
      const buffer = Buffer.allocUnsafe(OBJECT_LAYER_LIMITS.chunkBytes);
      let [sizeBytes, chunks, previous, toldBytes] = [0, 0, 0, 0];
      for (;;) {
        const { bytesRead } = await source.read(buffer, 0, buffer.byteLength, sizeBytes);
        if (bytesRead === 0) break;
        const [before, index] = [previous, chunks];
        previous = await persist(this.#how, signal, () => this.#bucket.writeChunk(upload, index, buffer.subarray(0, bytesRead), before));
        sizeBytes += bytesRead;
        chunks += 1;
        if (sizeBytes - toldBytes < OBJECT_LAYER_LIMITS.reportBytes) continue;
        toldBytes = sizeBytes;
        this.#report({ event: 'layer.uploading', digest, doneBytes: sizeBytes });
      }
      this.#report({ event: 'layer.uploaded', digest, doneBytes: sizeBytes });
      return { sizeBytes, chunks };
    } finally {
      await source.close();
    }
  }

  /** After a failure: what was sent is of no use, unless the info was stored and only its answer lost. Best effort, the sweep does the rest. */
  async #abandon(digest: LayerDigest, upload: string): Promise<void> {
    try {
      const last = await this.#bucket.last(digest);
      if (last?.upload !== upload) await this.#bucket.purge(upload);
    } catch {
      // the bus is away
    }
  }

  #entered(object: StoredObject): StoredObject {
    this.#catalogue.enter(object);
    return object;
  }
}

const hexOf = (digest: LayerDigest): string => digest.slice('sha256:'.length);

const contended = (digest: LayerDigest): DsecError =>
  DsecError.of('OVERLOADED', `layer ${digest} is being changed by too many at once; try again`, { details: { digest } });
