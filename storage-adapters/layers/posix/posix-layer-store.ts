/** Layer store on a local or shared POSIX file system. @paper §5.1 */
import type { Readable } from 'node:stream';
import type { DeleteOutcome, LayerInfo, LayerStore, PutOptions, VerifyOutcome } from '#actors/ports/layer-store.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { blobNotFound, deleteBlob, hasBlob, listBlobs, pathOfBlob, putBlob, readBlob, receiveBlob, renewBlob, touchBlob, verifyBlob } from './blobs.ts';
import { layerStoreError } from './fs-errors.ts';
import { PosixImageNames } from './names.ts';
import { createLayout, layoutOf, type StoreLayout } from './store-layout.ts';
import { sweepTempFiles } from './temp-files.ts';
import { sweepVolatile } from './volatile.ts';

/** Any number of processes may have the same store open. */
export class PosixLayerStore implements LayerStore {
  readonly names: PosixImageNames;
  readonly scratchDir: string;
  readonly #layout: StoreLayout;

  /** Opens the store in `dir`, which is created when absent, and removes what dead writers left. NO_SPACE, INVALID_ARGUMENT. */
  constructor(options: { readonly dir: string }) {
    this.#layout = layoutOf(options.dir);
    this.scratchDir = this.#layout.scratch;
    this.names = new PosixImageNames(this.#layout);
    try {
      createLayout(this.#layout);
      sweepTempFiles(this.#layout.temp);
      sweepVolatile(this.#layout);
    } catch (error) {
      throw layerStoreError(`open layer store ${options.dir}`, error);
    }
  }

  put(file: string, options: PutOptions = {}): Promise<LayerInfo> {
    return putBlob(this.#layout, file, options);
  }

  has(digest: LayerDigest): boolean {
    return hasBlob(this.#layout, digest);
  }

  isLocal(digest: LayerDigest): boolean {
    return this.has(digest);
  }

  /** A shared file system is everywhere; there is nothing to bring. */
  async ensureLocal(digest: LayerDigest): Promise<void> {
    if (!this.has(digest)) throw blobNotFound(digest);
  }

  async catchUp(): Promise<void> {}

  /** Stores bytes that come from elsewhere, if they are what the digest says; whatever breaks off leaves nothing. NO_SPACE, LAYER_NOT_FOUND. */
  receive(digest: LayerDigest, chunks: AsyncIterable<Uint8Array>): Promise<LayerInfo> {
    return receiveBlob(this.#layout, digest, chunks);
  }

  pathOf(digest: LayerDigest): string {
    return pathOfBlob(this.#layout, digest);
  }

  read(digest: LayerDigest): Promise<Readable> {
    return readBlob(this.#layout, digest);
  }

  list(): Promise<LayerInfo[]> {
    return listBlobs(this.#layout);
  }

  renew(digest: LayerDigest): Promise<boolean> {
    return renewBlob(this.#layout, digest);
  }

  /** It is in use: moves `storedAt` and nothing else. */
  touch(digest: LayerDigest): Promise<void> {
    return touchBlob(this.#layout, digest);
  }

  delete(digest: LayerDigest, options: { readonly storedBefore?: TimestampMs } = {}): Promise<DeleteOutcome> {
    return deleteBlob(this.#layout, digest, options.storedBefore);
  }

  verify(digest: LayerDigest): Promise<VerifyOutcome> {
    return verifyBlob(this.#layout, digest);
  }
}
