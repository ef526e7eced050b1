/**
 * What this process knows of the bucket: every object's info, followed in order. So questions on the create path cost a look into a
 * map. Own changes are entered at once; those of others when they arrive, `catchUp` waits for them.
 */
import type { Tail } from '#actors/ports/event-log.ts';
import { DsecError } from '#bus/errors.ts';
import type { ObjectBucket, StoredObject } from '../../jetstream/mod.ts';
import { OBJECT_LAYER_LIMITS } from './limits.ts';

export class BucketCatalogue {
  readonly #bucket: ObjectBucket;
  readonly #objects = new Map<string, StoredObject>();
  readonly #waiting = new Set<() => void>();
  readonly #tail: Tail;
  /** Every info up to here has been seen. */
  #position = 0;

  constructor(bucket: ObjectBucket) {
    this.#bucket = bucket;
    this.#tail = bucket.follow((object, sequence) => {
      if (object) this.enter(object);
      // Nothing older can come any more, so the mark has done its work.
      if (object?.deleted && this.#objects.get(object.name)?.sequence === sequence) this.#objects.delete(object.name);
      this.#position = sequence;
      for (const wake of [...this.#waiting]) wake();
    });
  }

  get(name: string): StoredObject | undefined {
    const object = this.#objects.get(name);
    return object?.deleted ? undefined : object;
  }

  *values(): Iterable<StoredObject> {
    for (const object of this.#objects.values()) if (!object.deleted) yield object;
  }

  /** The newer one stays. */
  enter(object: StoredObject): void {
    const known = this.#objects.get(object.name);
    if (!known || known.sequence < object.sequence) this.#objects.set(object.name, object);
  }

  async catchUp(): Promise<void> {
    const target = await this.#bucket.lastInfoSequence();
    const giveUpAt = performance.now() + OBJECT_LAYER_LIMITS.catchUpMs;
    while (this.#position < target) {
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0)
        throw DsecError.of('BUS_UNAVAILABLE', `layer store ${this.#bucket.name}: its newest names have not arrived; repeat it`, { outcome: 'not_applied' });
      await this.#next(leftMs);
    }
  }

  close(): Promise<void> {
    return this.#tail.close();
  }

  #next(maxMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, maxMs);
      this.#waiting.add(done);
    });
  }
}
