/**
 * Where a run directory belongs: in memory. It holds a socket, a record and a tombstone of each sandbox, made and removed at
 * every create and stop, and nothing that outlives the machine's boot. `/run` is in memory on an ordinary host; where it is
 * not, `/dev/shm` is.
 */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';

/** `f_type` of tmpfs. */
const TMPFS_MAGIC = 0x01021994;

export const isInMemory = (dir: string): boolean => {
  try {
    return statfsSync(dir).type === TMPFS_MAGIC;
  } catch {
    return false;
  }
};

/** First of the usual places that lies in memory, or `/run` when none does: slower, not wrong. */
const runtimeRoot = (): string => ['/run', '/dev/shm'].find(isInMemory) ?? '/run';

export const defaultRunDir = (): string => join(runtimeRoot(), 'dsec');

/** For a platform beside others, such as a test's: give it a name of its own. Short, since socket paths are. */
export const runDirNamed = (name: string): string => join(runtimeRoot(), name);
