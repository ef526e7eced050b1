/**
 * Files that are being written. Each lies in the store's `tmp/` under a name nobody looks up, and its writer holds a lock
 * on it; a file without a lock belongs to a writer that died, and the next process to open the store removes it.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { tryLock } from './file-lock.ts';
import { isAbsent } from './fs-errors.ts';

export type TempFile = { readonly path: string; readonly handle: FileHandle };

export const createTempFile = async (directory: string): Promise<TempFile> => {
  for (;;) {
    const path = join(directory, `.tmp-${randomBytes(12).toString('hex')}`);
    const handle = await open(path, 'wx+', 0o600);
    if (await ownTempFile(handle)) return { path, handle };
    await handle.close();
  }
};

/** A sweeper may come between creating and locking: whoever gets the lock first decides, and an unlinked file is no use. */
const ownTempFile = async (handle: FileHandle): Promise<boolean> => tryLock(handle.fd, 'exclusive') && (await handle.stat()).nlink > 0;

/** Runs `write`, makes the bytes durable and gives the file its final name; on any failure nothing is left. */
export const writeAtomically = async (tempDirectory: string, finalPath: string, write: (temp: TempFile) => Promise<void>): Promise<void> => {
  const temp = await createTempFile(tempDirectory);
  try {
    await write(temp);
    await temp.handle.sync();
    await rename(temp.path, finalPath);
  } catch (error) {
    await rm(temp.path, { force: true });
    throw error;
  } finally {
    await temp.handle.close();
  }
};

/** Makes renames and unlinks in a directory durable. */
export const syncDirectory = async (directory: string): Promise<void> => {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Removes the temporary files of writers that died; returns how many. Synchronous: it is part of opening the store, and finds next to nothing. */
export const sweepTempFiles = (directory: string): number =>
  readdirSync(directory).filter((name) => name.startsWith('.tmp-') && removeIfAbandoned(join(directory, name))).length;

const removeIfAbandoned = (path: string): boolean => {
  let fd: number;
  try {
    fd = openSync(path, 'r+');
  } catch (error) {
    if (isAbsent(error)) return false; // its writer has just finished
    throw error;
  }
  try {
    if (!tryLock(fd, 'exclusive')) return false;
    rmSync(path, { force: true });
    return true;
  } finally {
    closeSync(fd);
  }
};
