/**
 * Keeps a node's copies of layers within a bound: the ones that were used longest ago go, never one in use (INV-MOUNT), never one that
 * is nowhere else. The disk's free space counts as well: it belongs to the sandboxes first.
 */
import type { LayerInfo } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { PosixLayerStore } from '../posix/mod.ts';

/** Pure: whom to remove so that `excessBytes` go, in this order. May be too few. */
export const toEvict = (layers: readonly LayerInfo[], isHeld: (layer: LayerInfo) => boolean, excessBytes: number): LayerInfo[] => {
  const gone: LayerInfo[] = [];
  let left = excessBytes;
  for (const layer of layers.filter((one) => !isHeld(one)).sort((a, b) => a.storedAt - b.storedAt)) {
    if (left <= 0) break;
    gone.push(layer);
    left -= layer.sizeBytes;
  }
  return gone;
};

export type CacheRoomOptions = {
  readonly cache: PosixLayerStore;
  readonly maxBytes: number;
  /** Free on the cache's file system now, and what has to stay so. */
  readonly freeBytes: () => number;
  readonly floorBytes: number;
  /** Layers that something on this node stands on. */
  readonly inUse: () => ReadonlySet<LayerDigest>;
  /** Gives up what is held and not needed; afterwards `inUse` says less. */
  readonly releaseIdle?: () => Promise<void>;
  readonly onEvicted?: (layer: LayerInfo) => void;
};

export class CacheRoom {
  readonly #o: CacheRoomOptions;
  /** On their way to the bucket or from it, with how many want them. */
  readonly #pinned = new Map<LayerDigest, number>();
  #reservedBytes = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CacheRoomOptions) {
    this.#o = options;
  }

  /** Runs `work` with room for so many more bytes. NO_SPACE when what is in use leaves none. */
  async with<T>(digest: LayerDigest, sizeBytes: number, work: () => Promise<T>): Promise<T> {
    return this.pinned(digest, async () => {
      await this.#inTurn(() => this.#make(digest, sizeBytes));
      try {
        return await work();
      } finally {
        this.#reservedBytes -= sizeBytes;
      }
    });
  }

  /** The layer stays while `work` runs. */
  async pinned<T>(digest: LayerDigest, work: () => Promise<T>): Promise<T> {
    this.#pinned.set(digest, (this.#pinned.get(digest) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#pinned.get(digest) ?? 1) - 1;
      if (left === 0) this.#pinned.delete(digest);
      else this.#pinned.set(digest, left);
    }
  }

  /** Back within the bound, as far as that goes: after something was put, and from time to time. */
  trim(): Promise<void> {
    return this.#inTurn(async () => void (await this.#evict(0)));
  }

  async #make(digest: LayerDigest, sizeBytes: number): Promise<void> {
    let lackingBytes = await this.#evict(sizeBytes);
    if (lackingBytes > 0 && this.#o.releaseIdle) {
      await this.#o.releaseIdle();
      lackingBytes = await this.#evict(sizeBytes);
    }
    if (lackingBytes > 0)
      throw DsecError.of(
        'NO_SPACE',
        `layer ${digest} (${sizeBytes} bytes) does not fit beside the layers in use here, ${lackingBytes} bytes are lacking; raise layerCacheMiB or free disk space`,
        { details: { digest, lackingBytes } },
      );
    this.#reservedBytes += sizeBytes;
  }

  /** Removes what has to go for `moreBytes` to fit; what is still lacking then. */
  async #evict(moreBytes: number): Promise<number> {
    const inUse = this.#o.inUse();
    for (const digest of inUse) if (this.#o.cache.has(digest)) await this.#o.cache.touch(digest); // it is being used now
    const layers = await this.#o.cache.list();
    const excess = this.#excess(layers, moreBytes);
    // A volatile layer is a capture for forks and nowhere else.
    const isHeld = ({ digest, volatile }: LayerInfo): boolean => volatile === true || inUse.has(digest) || this.#pinned.has(digest);
    for (const layer of toEvict(layers, isHeld, excess)) {
      if (this.#o.inUse().has(layer.digest) || this.#pinned.has(layer.digest)) continue; // somebody came meanwhile
      const outcome = await this.#o.cache.delete(layer.digest, { storedBefore: (layer.storedAt + 1) as TimestampMs });
      if (outcome === 'deleted') this.#o.onEvicted?.(layer);
    }
    return excess <= 0 ? 0 : Math.max(0, this.#excess(await this.#o.cache.list(), moreBytes));
  }

  #excess(layers: readonly LayerInfo[], moreBytes: number): number {
    const wanted = moreBytes + this.#reservedBytes;
    const used = layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return Math.max(used + wanted - this.#o.maxBytes, wanted + this.#o.floorBytes - this.#o.freeBytes());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}
