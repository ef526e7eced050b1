/**
 * Private directories in which images are put together: `<layers>/build/<random>/`, on the file system of the store, so that
 * a finished image is moved and not copied. Owner: the build that made it; whatever a killed build left is removed by the
 * next one, which sees that nobody holds its lock.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '#adapters/layers/posix/mod.ts';

export type WorkDirectory = { readonly path: string; remove(): Promise<void> };

/** Locks lie beside the directories, so that removing a directory does not remove what says whose it is. */
const lockOf = (buildsDir: string, name: string): string => join(buildsDir, `${name}.lock`);
const NO_WAIT = { pollMs: 1, maxWaitMs: 0 } as const;

export const createWorkDirectory = async (buildsDir: string): Promise<WorkDirectory> => {
  await mkdir(buildsDir, { recursive: true, mode: 0o700 });
  for (;;) {
    const name = `work-${randomBytes(8).toString('hex')}`;
    const lock = await lockFile(lockOf(buildsDir, name), 'exclusive', NO_WAIT);
    if (!lock) continue; // a sweep looked at the new lock first
    const path = join(buildsDir, name);
    await mkdir(path, { mode: 0o700 });
    return {
      path,
      remove: async () => {
        await rm(path, { recursive: true, force: true });
        await lock.releaseAndRemove();
      },
    };
  }
};

/** Removes the directories of builds that died; returns how many. */
export const sweepWorkDirectories = async (buildsDir: string): Promise<number> => {
  let removed = 0;
  for (const entry of await readdir(buildsDir).catch(() => [])) {
    if (!/^work-[0-9a-f]{16}\.lock$/.test(entry)) continue;
    const lock = await lockFile(join(buildsDir, entry), 'exclusive', NO_WAIT);
    if (!lock) continue;
    const path = join(buildsDir, entry.slice(0, -'.lock'.length));
    if (await stat(path).catch(() => null)) removed += 1;
    await rm(path, { recursive: true, force: true });
    await lock.releaseAndRemove();
  }
  return removed;
};
