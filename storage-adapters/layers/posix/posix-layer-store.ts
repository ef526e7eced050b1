/** Layer store on a local or shared POSIX file system. @paper §5.1 */
import type { Readable } from 'node:stream';
import type { DeleteOutcome, LayerInfo, LayerStore, PutOptions, VerifyOutcome } from '#actors/ports/layer-store.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { deleteBlob, hasBlob, listBlobs, localBlobPath, putBlob, readBlob, verifyBlob } from './blobs.ts';
import { layerStoreError } from './fs-errors.ts';
import { PosixImageNames } from './names.ts';
import { createLayout, layoutOf, type StoreLayout } from './store-layout.ts';
import { sweepTempFiles } from './temp-files.ts';

class PosixLayerStore implements LayerStore {
  readonly names: PosixImageNames;
  readonly #layout: StoreLayout;

  constructor(layout: StoreLayout) {
    this.#layout = layout;
    this.names = new PosixImageNames(layout);
  }

  put(file: string, options: PutOptions = {}): Promise<LayerInfo> {
    return putBlob(this.#layout, file, options);
  }

  has(digest: LayerDigest): boolean {
    return hasBlob(this.#layout, digest);
  }

  localPath(digest: LayerDigest): string {
    return localBlobPath(this.#layout, digest);
  }

  read(digest: LayerDigest): Promise<Readable> {
    return readBlob(this.#layout, digest);
  }

  list(): Promise<LayerInfo[]> {
    return listBlobs(this.#layout);
  }

  delete(digest: LayerDigest, options: { readonly storedBefore?: TimestampMs } = {}): Promise<DeleteOutcome> {
    return deleteBlob(this.#layout, digest, options.storedBefore);
  }

  verify(digest: LayerDigest): Promise<VerifyOutcome> {
    return verifyBlob(this.#layout, digest);
  }
}

/** Opens the store at `root`, which is created when absent, and removes what dead writers left. Any number of processes may have it open. */
export const openPosixLayerStore = async (root: string): Promise<LayerStore> => {
  const layout = layoutOf(root);
  try {
    await createLayout(layout);
    await sweepTempFiles(layout.temp);
  } catch (error) {
    throw layerStoreError(`open layer store ${root}`, error);
  }
  return new PosixLayerStore(layout);
};
