/** The catalogue of images in the bucket: an object without bytes for each name, its record in the metadata, replaced as one message. */
import { type ImageNames, ImageRecord } from '#actors/ports/layer-store.ts';
import type { Clock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { ObjectBucket, StoredObject } from '../../jetstream/mod.ts';
import type { BucketCatalogue } from './catalogue.ts';
import { OBJECT_LAYER_LIMITS } from './limits.ts';
import { type Persist, persist } from './persist.ts';

const PREFIX = 'name:';
const RECORD = 'record';
/** SHA-256 of no bytes. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export class ObjectImageNames implements ImageNames {
  readonly #bucket: ObjectBucket;
  readonly #catalogue: BucketCatalogue;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #how: Persist;
  /** Makes sure that the bucket holds the layer and will for the grace period of collection; false when it cannot. */
  readonly #renew: (digest: LayerDigest) => Promise<boolean>;
  /** Parsed records of infos; goes with the info. */
  readonly #records = new WeakMap<StoredObject, ImageRecord>();

  constructor(bucket: ObjectBucket, catalogue: BucketCatalogue, clock: Pick<Clock, 'now'>, renew: (digest: LayerDigest) => Promise<boolean>) {
    this.#bucket = bucket;
    this.#catalogue = catalogue;
    this.#clock = clock;
    this.#how = { settle: (signal) => bucket.settle(signal) };
    this.#renew = renew;
  }

  lookup(name: ImageName): ImageRecord | null {
    const object = this.#catalogue.get(PREFIX + name);
    return object ? this.#recordOf(object) : null;
  }

  async set(record: ImageRecord): Promise<void> {
    const parsed = ImageRecord.parse(record);
    if (!(await this.#renew(parsed.digest)))
      throw DsecError.of('LAYER_NOT_FOUND', `layer ${parsed.digest} is not in store ${this.#bucket.name}; build or import the image again`, {
        details: { digest: parsed.digest },
      });
    const name = PREFIX + parsed.name;
    const metadata = { [RECORD]: JSON.stringify(parsed) };
    await this.#replace(name, async (last) => {
      const object = { name, upload: this.#bucket.newUpload(), sizeBytes: 0, chunks: 0, writtenAt: this.#clock.now(), metadata };
      const sequence = await this.#bucket.write({ ...object, sha256: EMPTY_SHA256 }, last?.sequence ?? 0);
      return sequence === 'conflict' ? 'conflict' : { ...object, deleted: false, sequence };
    });
  }

  async delete(name: ImageName): Promise<boolean> {
    let existed = false;
    await this.#replace(PREFIX + name, async (last) => {
      if (!last || last.deleted) return null;
      existed = true;
      const sequence = await this.#bucket.delete(last, this.#clock.now());
      return sequence === 'conflict' ? 'conflict' : { ...last, deleted: true, sequence };
    });
    return existed;
  }

  async list(): Promise<ImageRecord[]> {
    await persist(this.#how, undefined, () => this.#catalogue.catchUp());
    const records = this.#named().map((object) => this.#recordOf(object));
    return records.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  listNames(limit: number): ImageName[] {
    return this.#named()
      .slice(0, limit)
      .map(({ name }) => name.slice(PREFIX.length) as ImageName);
  }

  #named(): StoredObject[] {
    return [...this.#catalogue.values()].filter(({ name }) => name.startsWith(PREFIX));
  }

  /** The last writer of a name wins, as on a file system. */
  async #replace(name: string, write: (last: StoredObject | null) => Promise<StoredObject | 'conflict' | null>): Promise<void> {
    for (let attempt = 0; attempt < OBJECT_LAYER_LIMITS.conflicts; attempt += 1) {
      const written = await persist(this.#how, undefined, async () => write(await this.#bucket.last(name)));
      if (written === 'conflict') continue;
      if (written) this.#catalogue.enter(written);
      return;
    }
    throw DsecError.of('OVERLOADED', `image name ${name.slice(PREFIX.length)} is being changed by too many at once; try again`);
  }

  #recordOf(object: StoredObject): ImageRecord {
    const known = this.#records.get(object);
    if (known) return known;
    const parsed = ImageRecord.safeParse(jsonOf(object.metadata[RECORD] ?? ''));
    if (!parsed.success) {
      const name = object.name.slice(PREFIX.length);
      throw DsecError.of('INTERNAL', `image name ${name} in store ${this.#bucket.name} has a record that cannot be read; set it again`, {
        cause: parsed.error,
      });
    }
    this.#records.set(object, parsed.data);
    return parsed.data;
  }
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
