/**
 * The catalogue: one small JSON file per name, replaced atomically, so any number of processes may write and a reader
 * sees a whole record, old or new.
 *
 * `lookup` costs one stat: a record read before is trusted while the file is the same inode with the same times, and was
 * already older than a clock tick of the file system when it was read.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { type ImageNames, ImageRecord } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import type { ImageName } from '#bus/ids.ts';
import { safeParse } from '#bus/proof.ts';
import { blobNotFound, hasBlob } from './blobs.ts';
import { isAbsent, layerStoreError } from './fs-errors.ts';
import { POSIX_LAYER_LIMITS } from './limits.ts';
import { nameOfFile, namePath, type StoreLayout } from './store-layout.ts';
import { withStoreLock } from './store-lock.ts';
import { syncDirectory, writeAtomically } from './temp-files.ts';
import { settle } from './volatile.ts';

type Cached = { readonly inode: bigint; readonly changedNs: bigint; readonly sizeBytes: bigint; readonly record: ImageRecord };

export class PosixImageNames implements ImageNames {
  readonly #layout: StoreLayout;
  readonly #cache = new Map<ImageName, Cached>();

  constructor(layout: StoreLayout) {
    this.#layout = layout;
  }

  lookup(name: ImageName): ImageRecord | null {
    const path = namePath(this.#layout, name);
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stats) {
      this.#cache.delete(name);
      return null;
    }
    const cached = this.#cache.get(name);
    if (cached && cached.inode === stats.ino && cached.changedNs === stats.ctimeNs && cached.sizeBytes === stats.size) return cached.record;
    return this.#load(name, path, stats);
  }

  #load(name: ImageName, path: string, stats: { ino: bigint; ctimeNs: bigint; size: bigint }): ImageRecord | null {
    const record = readRecordSync(path, name);
    if (!record) return null;
    const ageMs = Date.now() - Number(stats.ctimeNs / 1_000_000n);
    this.#cache.delete(name);
    if (ageMs > POSIX_LAYER_LIMITS.racyMs) this.#remember(name, { inode: stats.ino, changedNs: stats.ctimeNs, sizeBytes: stats.size, record });
    return record;
  }

  #remember(name: ImageName, cached: Cached): void {
    if (this.#cache.size >= POSIX_LAYER_LIMITS.cachedRecords) {
      const oldest = this.#cache.keys().next();
      if (!oldest.done) this.#cache.delete(oldest.value);
    }
    this.#cache.set(name, cached);
  }

  async set(record: ImageRecord): Promise<void> {
    const parsed = ImageRecord.parse(record);
    try {
      await withStoreLock(this.#layout, 'shared', async () => {
        if (!hasBlob(this.#layout, parsed.digest)) throw blobNotFound(parsed.digest);
        await settle(this.#layout, parsed.digest);
        await writeAtomically(this.#layout.temp, namePath(this.#layout, parsed.name), (temp) => temp.handle.writeFile(`${JSON.stringify(parsed)}\n`));
        await syncDirectory(this.#layout.names);
      });
    } catch (error) {
      throw layerStoreError(`record image name ${record.name}`, error);
    }
  }

  async delete(name: ImageName): Promise<boolean> {
    this.#cache.delete(name);
    try {
      await rm(namePath(this.#layout, name));
    } catch (error) {
      if (isAbsent(error)) return false;
      throw layerStoreError(`remove image name ${name}`, error);
    }
    await syncDirectory(this.#layout.names);
    return true;
  }

  async list(): Promise<ImageRecord[]> {
    const names = (await readdir(this.#layout.names)).map(nameOfFile).filter((name) => name !== null);
    const records: ImageRecord[] = [];
    for (let at = 0; at < names.length; at += POSIX_LAYER_LIMITS.parallelReads) {
      const batch = names.slice(at, at + POSIX_LAYER_LIMITS.parallelReads);
      for (const record of await Promise.all(batch.map((name) => readRecord(namePath(this.#layout, name), name)))) if (record) records.push(record);
    }
    return records.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  listNames(limit: number): ImageName[] {
    return readdirSync(this.#layout.names)
      .slice(0, limit)
      .map(nameOfFile)
      .filter((name) => name !== null);
  }
}

/** Null when the name was removed in the meantime. */
const readRecord = async (path: string, name: ImageName): Promise<ImageRecord | null> => {
  try {
    return parseRecord(path, name, await readFile(path, 'utf8'));
  } catch (error) {
    if (isAbsent(error)) return null;
    throw layerStoreError(`read catalogue record ${path}`, error);
  }
};

const readRecordSync = (path: string, name: ImageName): ImageRecord | null => {
  try {
    return parseRecord(path, name, readFileSync(path, 'utf8'));
  } catch (error) {
    if (isAbsent(error)) return null;
    throw layerStoreError(`read catalogue record ${path}`, error);
  }
};

const parseRecord = (path: string, name: ImageName, text: string): ImageRecord => {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (cause) {
    throw damaged(path, cause);
  }
  const parsed = safeParse(ImageRecord, raw);
  if (!parsed.success) throw damaged(path, parsed.error);
  if (parsed.data.name !== name) throw damaged(path, new Error(`it holds the record of ${parsed.data.name}`));
  return parsed.data;
};

/** Records are replaced whole, so a record that does not parse was edited or lies on a broken disk. */
const damaged = (path: string, cause: unknown): DsecError =>
  DsecError.of('INTERNAL', `catalogue record ${path} is damaged; remove the file and build or import the image again`, { cause, details: { path } });
