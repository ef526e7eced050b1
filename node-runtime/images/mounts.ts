/**
 * Which layers are mounted on this node and for whom. Each image is mounted once and shared by every overlay above it,
 * so that its page cache is shared too; it stays mounted a while after its last user, for the next one.
 *
 * Does not mount by itself: the launcher does. Keeps no truth: references come back from the live sandboxes after a
 * restart, mounts from the launcher's list.
 * @paper §5.1 §5.3
 *
 * INV-MOUNT: an image with a user is never unmounted, and calls about one image never overlap.
 */
import type { Clock } from '#actors/ports/clock.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { LayerDigest, SandboxId } from '#bus/ids.ts';
import { MOUNT_LIMITS } from './limits.ts';

/** The launcher's side. Mounting is idempotent; unmounting may be refused while the kernel still uses the image. */
export type ImageMounter = {
  mountImage(digest: LayerDigest, path: string): Promise<unknown>;
  umountImage(digest: LayerDigest): Promise<unknown>;
  /** What is mounted now, for a fresh Edge before an old launcher. */
  listImages?(): Promise<readonly LayerDigest[]>;
};

export type ImageMountsOptions = {
  /** Image file of a layer; throws LAYER_NOT_FOUND. */
  readonly pathOf: (digest: LayerDigest) => string;
  /** Before an image is mounted: makes `pathOf` answer where the layer lies off the node. */
  readonly bring?: (digest: LayerDigest) => Promise<void>;
  readonly mounter: ImageMounter;
  readonly clock?: Pick<Clock, 'monotonicMs'>;
  readonly idleImages?: number;
  readonly idleMs?: number;
  /** An idle image stayed mounted because the unmount was refused; it is tried again later. */
  readonly onUnmountFailed?: (digest: LayerDigest, error: unknown) => void;
};

type Image = {
  readonly digest: LayerDigest;
  readonly users: Set<SandboxId>;
  /** `unknown` after a restart: the launcher is asked again before anybody relies on it. */
  state: 'unknown' | 'mounted' | 'unmounted';
  idleSinceMs: number;
  /** Calls about this image wait for the one before. */
  queue: Promise<void>;
};

export class ImageMounts {
  readonly #options: ImageMountsOptions;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #images = new Map<LayerDigest, Image>();
  readonly #layersOf = new Map<SandboxId, Set<LayerDigest>>();
  #sweeping: Promise<void> | null = null;

  constructor(options: ImageMountsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Mounts the layer if it is not, and counts the sandbox as its user. Idempotent. LAYER_NOT_FOUND, or the mounter's error. */
  async acquire(digest: LayerDigest, id: SandboxId): Promise<void> {
    const isNew = !this.#layersOf.get(id)?.has(digest);
    const image = this.#refer(digest, id);
    try {
      await this.#inTurn(image, () => this.#ensureMounted(image, this.#options.mounter));
    } catch (error) {
      if (isNew) this.#forget(image, id); // an older reference belongs to a sandbox that may be running
      throw error;
    }
  }

  /** The sandbox uses no layer any more. Idempotent; unknown sandboxes have nothing to give back. */
  async release(id: SandboxId): Promise<void> {
    for (const digest of this.#layersOf.get(id) ?? []) {
      const image = this.#images.get(digest);
      if (image) this.#forget(image, id);
    }
    await this.sweep();
  }

  /** Counts a live sandbox found at start as a user of its layers, before anything is mounted or unmounted. */
  restore(id: SandboxId, layers: readonly LayerDigest[]): void {
    for (const digest of layers) this.#refer(digest, id);
  }

  /** After a launcher came (back): learns what it has mounted and mounts what live sandboxes use. The first error is thrown after all were tried. */
  async remount(mounter: ImageMounter = this.#options.mounter): Promise<void> {
    for (const image of this.#images.values()) image.state = 'unknown';
    for (const digest of (await mounter.listImages?.()) ?? []) this.#imageOf(digest);
    const used = [...this.#images.values()].filter((image) => image.users.size > 0);
    const results = await Promise.allSettled(used.map((image) => this.#inTurn(image, () => this.#ensureMounted(image, mounter))));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Layers that are mounted now, newest first. */
  ready(): readonly LayerDigest[] {
    return [...this.#images].flatMap(([digest, { state }]) => (state === 'mounted' ? [digest] : [])).reverse();
  }

  isMounted(digest: LayerDigest): boolean {
    return this.#images.get(digest)?.state === 'mounted';
  }

  /** Layers whose files must stay: mounted, about to be, or used. */
  held(): IterableIterator<LayerDigest> {
    return this.#images.keys();
  }

  /** Unmounts images that were idle too long or are too many. Called on every release; the Edge's tick may call it too. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#unmountIdle().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  /** Unmounts every image that nobody uses now: their files are needed for something else. One that is being brought is left alone. */
  async releaseIdle(): Promise<void> {
    const idle = [...this.#images.values()].filter(({ users, state }) => users.size === 0 && state === 'mounted');
    await Promise.all(idle.map((image) => this.#inTurn(image, () => this.#unmountUnlessUsed(image))));
  }

  /** Layers that live sandboxes on this node stand on: the live set of garbage collection. */
  usedLayers(): ReadonlySet<LayerDigest> {
    return new Set([...this.#images.values()].filter((image) => image.users.size > 0).map((image) => image.digest));
  }

  /** Sandboxes counted as users of one layer. */
  usersOf(digest: LayerDigest): readonly SandboxId[] {
    return [...(this.#images.get(digest)?.users ?? [])];
  }

  async #unmountIdle(): Promise<void> {
    const idle = [...this.#images.values()].filter((image) => image.users.size === 0).sort((a, b) => a.idleSinceMs - b.idleSinceMs);
    const tooMany = idle.length - (this.#options.idleImages ?? MOUNT_LIMITS.idleImages);
    const staleBeforeMs = this.#clock.monotonicMs() - (this.#options.idleMs ?? MOUNT_LIMITS.idleMs);
    const due = idle.filter((image, position) => position < tooMany || image.idleSinceMs <= staleBeforeMs);
    await Promise.all(due.map((image) => this.#inTurn(image, () => this.#unmountUnlessUsed(image))));
  }

  async #ensureMounted(image: Image, mounter: ImageMounter): Promise<void> {
    if (image.state === 'mounted') return;
    await this.#options.bring?.(image.digest);
    await mounter.mountImage(image.digest, this.#options.pathOf(image.digest));
    image.state = 'mounted';
  }

  async #unmountUnlessUsed(image: Image): Promise<void> {
    if (image.users.size > 0) return; // somebody came while this waited for its turn
    if (image.state !== 'unmounted') {
      try {
        await this.#options.mounter.umountImage(image.digest);
      } catch (error) {
        image.idleSinceMs = this.#clock.monotonicMs();
        this.#options.onUnmountFailed?.(image.digest, error);
        return;
      }
      image.state = 'unmounted';
    }
    if (image.users.size === 0 && this.#images.get(image.digest) === image) this.#images.delete(image.digest);
  }

  /** Errors belong to the caller; the next in line starts afresh. */
  #inTurn(image: Image, work: () => Promise<void>): Promise<void> {
    const turn = image.queue.then(work);
    image.queue = turn.catch(() => undefined);
    return turn;
  }

  #imageOf(digest: LayerDigest): Image {
    let image = this.#images.get(digest);
    if (!image) {
      image = { digest, users: new Set(), state: 'unknown', idleSinceMs: this.#clock.monotonicMs(), queue: Promise.resolve() };
      this.#images.set(digest, image);
    }
    return image;
  }

  #refer(digest: LayerDigest, id: SandboxId): Image {
    const image = this.#imageOf(digest);
    image.users.add(id);
    const layers = this.#layersOf.get(id);
    if (layers) layers.add(digest);
    else this.#layersOf.set(id, new Set([digest]));
    return image;
  }

  #forget(image: Image, id: SandboxId): void {
    if (image.users.delete(id) && image.users.size === 0) image.idleSinceMs = this.#clock.monotonicMs();
    const layers = this.#layersOf.get(id);
    layers?.delete(image.digest);
    if (layers?.size === 0) this.#layersOf.delete(id);
  }
}
