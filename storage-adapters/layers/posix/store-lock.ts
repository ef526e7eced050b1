/** The store-wide lock: shared to publish, exclusive to remove. Held for a few system calls, released by the kernel on death. */
import { DsecError } from '#bus/errors.ts';
import { type LockMode, lockFile } from './file-lock.ts';
import { POSIX_LAYER_LIMITS } from './limits.ts';
import type { StoreLayout } from './store-layout.ts';

export const withStoreLock = async <T>(layout: StoreLayout, mode: LockMode, work: () => Promise<T>): Promise<T> => {
  const lock = await lockFile(layout.lock, mode, { pollMs: POSIX_LAYER_LIMITS.lockPollMs, maxWaitMs: POSIX_LAYER_LIMITS.lockWaitMs });
  if (!lock) {
    throw DsecError.of('OVERLOADED', `layer store ${layout.root} stayed locked for ${POSIX_LAYER_LIMITS.lockWaitMs} ms; look for a hung disk, then try again`);
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
};
