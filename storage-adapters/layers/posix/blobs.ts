/**
 * Layers by content address. A layer is written under a temporary name, made durable, and only then renamed to its
 * digest, so a reader that finds the name finds the whole (INV-LAYER).
 *
 * A repeated put renews `storedAt`, and a delete can be bounded by it; both hold the store's lock while they look and act,
 * so garbage collection never takes a layer from under a writer that has just been told "stored".
 */
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import type { DeleteOutcome, LayerInfo, PutOptions, VerifyOutcome } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { isAbsent, layerStoreError } from './fs-errors.ts';
import { POSIX_LAYER_LIMITS } from './limits.ts';
import { blobPath, digestOfBlobFile, hexOf, type StoreLayout } from './store-layout.ts';
import { withStoreLock } from './store-lock.ts';
import { createTempFile, syncDirectory } from './temp-files.ts';
import { isVolatile, markVolatile, settle, unmark, volatileHexes } from './volatile.ts';

export const putBlob = async (layout: StoreLayout, file: string, options: PutOptions): Promise<LayerInfo> => {
  try {
    return (options.consume ? await adopt(layout, file, options) : null) ?? (await copyIn(layout, file, options));
  } catch (error) {
    throw layerStoreError(`store image ${file}`, error);
  }
};

/** Takes the file itself. Null when it lies on another file system and has to be copied. */
const adopt = async (layout: StoreLayout, file: string, { signal, volatile, digest: known }: PutOptions): Promise<LayerInfo | null> => {
  const [source, store] = await Promise.all([stat(file), stat(layout.blobs)]);
  if (source.dev !== store.dev) return null;
  const handle = await open(file, 'r');
  try {
    signal?.throwIfAborted();
    const digest = known ?? (await digestOf(handle, file, signal));
    await handle.chmod(0o444);
    if (volatile) return await publishVolatile(layout, digest, file);
    await handle.sync();
    return await publish(layout, digest, file);
  } finally {
    await handle.close();
  }
};

const copyIn = async (layout: StoreLayout, file: string, options: PutOptions): Promise<LayerInfo> => {
  const source = await open(file, 'r');
  try {
    const temp = await createTempFile(layout.temp);
    try {
      const digest = await digestOf(source, file, options.signal, temp.handle);
      await temp.handle.chmod(0o444);
      if (!options.volatile) await temp.handle.sync();
      const info = await (options.volatile ? publishVolatile : publish)(layout, digest, temp.path);
      if (options.consume) await rm(file);
      return info;
    } finally {
      await rm(temp.path, { force: true });
      await temp.handle.close();
    }
  } finally {
    await source.close();
  }
};

export const receiveBlob = async (layout: StoreLayout, digest: LayerDigest, chunks: AsyncIterable<Uint8Array>): Promise<LayerInfo> => {
  const temp = await createTempFile(layout.temp);
  try {
    const hash = createHash('sha256');
    for await (const chunk of chunks) {
      hash.update(chunk);
      await temp.handle.writeFile(chunk);
    }
    if (`sha256:${hash.digest('hex')}` !== digest)
      throw DsecError.of('LAYER_NOT_FOUND', `layer ${digest} came with other bytes than its digest says; delete it in the store, then build it again`, {
        details: { digest },
      });
    await temp.handle.chmod(0o444);
    await temp.handle.sync();
    return await publish(layout, digest, temp.path);
  } catch (error) {
    throw layerStoreError(`fetch layer ${digest}`, error);
  } finally {
    await rm(temp.path, { force: true });
    await temp.handle.close();
  }
};

/** SHA-256 of what the handle holds; copies it to `target` on the way. */
const digestOf = async (source: FileHandle, file: string, signal?: AbortSignal, target?: FileHandle): Promise<LayerDigest> => {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(POSIX_LAYER_LIMITS.chunkBytes);
  let position = 0;
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead } = await source.read(chunk, 0, chunk.byteLength, position);
    if (bytesRead === 0) break;
    const part = chunk.subarray(0, bytesRead);
    hash.update(part);
    await target?.writeFile(part);
    position += bytesRead;
  }
  if (position === 0) throw DsecError.of('INVALID_ARGUMENT', `image ${file} is empty; build it again`);
  return `sha256:${hash.digest('hex')}` as LayerDigest;
};

/**
 * Gives complete, durable bytes their address; the path given in is gone afterwards. A layer that is there already stays:
 * it may be mounted, and a second inode would neither share its page cache nor its disk space.
 */
const publish = (layout: StoreLayout, digest: LayerDigest, completeFile: string): Promise<LayerInfo> =>
  withStoreLock(layout, 'shared', async () => {
    const path = blobPath(layout, digest);
    const now = new Date();
    if (hasBlob(layout, digest)) {
      await settle(layout, digest);
      await rm(completeFile);
    } else await rename(completeFile, path);
    await utimes(path, now, now);
    await syncDirectory(layout.blobs);
    return infoOf(digest, await stat(path));
  });

/** One that is there keeps the durability that it has. */
const publishVolatile = (layout: StoreLayout, digest: LayerDigest, completeFile: string): Promise<LayerInfo> =>
  withStoreLock(layout, 'shared', async () => {
    const path = blobPath(layout, digest);
    if (hasBlob(layout, digest)) await rm(completeFile);
    else {
      await markVolatile(layout, digest);
      await rename(completeFile, path);
    }
    const now = new Date();
    await utimes(path, now, now);
    return { ...infoOf(digest, await stat(path)), ...((await isVolatile(layout, digest)) ? { volatile: true as const } : {}) };
  });

const infoOf = (digest: LayerDigest, stats: { size: number; mtimeMs: number }): LayerInfo => ({
  digest,
  sizeBytes: stats.size,
  storedAt: Math.floor(stats.mtimeMs) as TimestampMs,
});

export const hasBlob = (layout: StoreLayout, digest: LayerDigest): boolean => statSync(blobPath(layout, digest), { throwIfNoEntry: false }) !== undefined;

export const pathOfBlob = (layout: StoreLayout, digest: LayerDigest): string => {
  if (!hasBlob(layout, digest)) throw blobNotFound(digest);
  return blobPath(layout, digest);
};

export const readBlob = async (layout: StoreLayout, digest: LayerDigest): Promise<Readable> => {
  try {
    const handle = await open(blobPath(layout, digest), 'r');
    return createReadStream('', { fd: handle, highWaterMark: POSIX_LAYER_LIMITS.chunkBytes });
  } catch (error) {
    if (isAbsent(error)) throw blobNotFound(digest);
    throw layerStoreError(`read layer ${digest}`, error);
  }
};

export const listBlobs = async (layout: StoreLayout): Promise<LayerInfo[]> => {
  const found: LayerInfo[] = [];
  const volatile = volatileHexes(layout);
  for (const fileName of await readdir(layout.blobs)) {
    const digest = digestOfBlobFile(fileName);
    const stats = digest === null ? undefined : statSync(blobPath(layout, digest), { throwIfNoEntry: false });
    if (digest !== null && stats) found.push({ ...infoOf(digest, stats), ...(volatile.has(hexOf(digest)) ? { volatile: true as const } : {}) });
  }
  return found.sort((a, b) => (a.digest < b.digest ? -1 : 1));
};

export const renewBlob = (layout: StoreLayout, digest: LayerDigest): Promise<boolean> =>
  withStoreLock(layout, 'shared', async () => {
    if (!hasBlob(layout, digest)) return false;
    await settle(layout, digest);
    const now = new Date();
    await utimes(blobPath(layout, digest), now, now);
    return true;
  });

export const touchBlob = (layout: StoreLayout, digest: LayerDigest): Promise<void> =>
  withStoreLock(layout, 'shared', async () => {
    const now = new Date();
    if (hasBlob(layout, digest)) await utimes(blobPath(layout, digest), now, now);
  });

export const deleteBlob = (layout: StoreLayout, digest: LayerDigest, storedBefore: TimestampMs | undefined): Promise<DeleteOutcome> =>
  withStoreLock(layout, 'exclusive', async () => {
    const path = blobPath(layout, digest);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!stats) return 'absent';
    if (storedBefore !== undefined && infoOf(digest, stats).storedAt >= storedBefore) return 'kept';
    await rm(path);
    await syncDirectory(layout.blobs);
    await unmark(layout, digest);
    return 'deleted';
  });

export const verifyBlob = async (layout: StoreLayout, digest: LayerDigest): Promise<VerifyOutcome> => {
  const path = blobPath(layout, digest);
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    if (isAbsent(error)) return 'absent';
    throw layerStoreError(`verify layer ${digest}`, error);
  }
  try {
    if ((await handle.stat()).size === 0) return 'corrupt';
    return (await digestOf(handle, basename(path))) === digest ? 'intact' : 'corrupt';
  } finally {
    await handle.close();
  }
};

export const blobNotFound = (digest: LayerDigest): DsecError =>
  DsecError.of('LAYER_NOT_FOUND', `layer ${digest} is not in the store of this machine; build or import the image again`, { details: { digest } });
