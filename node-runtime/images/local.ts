/** Whether an image can be mounted here, and making it so: it and the data files that it stands on. */
import type { LayerStore } from '#actors/ports/layer-store.ts';
import type { LayerDigest } from '#bus/ids.ts';
import { dataFilesOf } from './data-files.ts';

type Store = Pick<LayerStore, 'isLocal' | 'pathOf' | 'ensureLocal'>;

export const isHere = (store: Store, digest: LayerDigest): boolean =>
  store.isLocal(digest) && dataFilesOf(store.pathOf(digest)).every((data) => store.isLocal(data));

/** The errors of `ensureLocal`. */
export const bringHere = async (store: Store, digest: LayerDigest, signal?: AbortSignal): Promise<void> => {
  const options = signal ? { signal } : {};
  await store.ensureLocal(digest, options);
  for (const data of dataFilesOf(store.pathOf(digest))) await store.ensureLocal(data, options);
};

/** The images and the data files of those that are here. */
export const withDataFiles = (store: Store, digests: Iterable<LayerDigest>): Set<LayerDigest> => {
  const all = new Set<LayerDigest>();
  for (const digest of digests) {
    all.add(digest);
    if (store.isLocal(digest)) for (const data of dataFilesOf(store.pathOf(digest))) all.add(data);
  }
  return all;
};
