/**
 * Where a store's files lie under its root. Owner: this adapter. All of it is truth except `tmp/`, which may be emptied.
 *
 *     blobs/sha256/<hex>.erofs   layers, read-only, complete from the moment the name exists
 *     names/<encoded>.json       one catalogue record each
 *     volatile/<hex>             marks of layers that are not durable yet (`volatile.ts`)
 *     tmp/                       files being written (`temp-files.ts`)
 *     build/                     owned by the builders of images
 *     lock                       shared by writers that publish, exclusive for the one that removes a layer
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import { LayerDigest as LayerDigestSchema } from '#bus/ids.ts';

export type StoreLayout = {
  readonly root: string;
  readonly blobs: string;
  readonly names: string;
  readonly volatile: string;
  readonly temp: string;
  readonly scratch: string;
  readonly lock: string;
};

export const layoutOf = (root: string): StoreLayout => ({
  root,
  blobs: join(root, 'blobs', 'sha256'),
  names: join(root, 'names'),
  volatile: join(root, 'volatile'),
  temp: join(root, 'tmp'),
  scratch: join(root, 'build'),
  lock: join(root, 'lock'),
});

/** Images may hold secrets of their builders: nobody but the owner may walk in. */
export const createLayout = (layout: StoreLayout): void => {
  for (const directory of [layout.blobs, layout.names, layout.volatile, layout.temp]) mkdirSync(directory, { recursive: true, mode: 0o700 });
};

const BLOB_SUFFIX = '.erofs';
const NAME_SUFFIX = '.json';

export const blobPath = (layout: StoreLayout, digest: LayerDigest): string => join(layout.blobs, `${digest.slice('sha256:'.length)}${BLOB_SUFFIX}`);

export const hexOf = (digest: LayerDigest): string => digest.slice('sha256:'.length);

/** Null for a file that is not a layer. */
export const digestOfBlobFile = (fileName: string): LayerDigest | null => {
  const parsed = fileName.endsWith(BLOB_SUFFIX) ? LayerDigestSchema.safeParse(`sha256:${fileName.slice(0, -BLOB_SUFFIX.length)}`) : undefined;
  return parsed?.success ? parsed.data : null;
};

/** `/` and `:` become characters that no image name contains, one for one, so that the longest name still fits a file name. */
export const namePath = (layout: StoreLayout, name: ImageName): string => `${layout.names}/${name.replaceAll('/', '+').replaceAll(':', '@')}${NAME_SUFFIX}`;

export const nameOfFile = (fileName: string): ImageName | null =>
  fileName.endsWith(NAME_SUFFIX) && !fileName.startsWith('.')
    ? (fileName.slice(0, -NAME_SUFFIX.length).replaceAll('+', '/').replaceAll('@', ':') as ImageName)
    : null;
