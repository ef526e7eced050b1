/**
 * Advisory locks that die with their holder: flock(2) on an open file. Node has no call for it, so libc is asked directly.
 * Descriptors of Node are close-on-exec, so no child process ever keeps a lock alive.
 */
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import koffi from 'koffi';

const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;

const libc = koffi.load('libc.so.6');
const flock = libc.func('int flock(int fd, int operation)') as (fd: number, operation: number) => number;

export type LockMode = 'shared' | 'exclusive';

/** Never waits. False: another open file holds a conflicting lock. */
export const tryLock = (fd: number, mode: LockMode): boolean => {
  for (;;) {
    if (flock(fd, (mode === 'shared' ? LOCK_SH : LOCK_EX) | LOCK_NB) === 0) return true;
    const errno = koffi.errno();
    if (errno === koffi.os.errno['EINTR']) continue;
    if (errno === koffi.os.errno['EWOULDBLOCK'] || errno === koffi.os.errno['EAGAIN']) return false;
    throw Object.assign(new Error(`flock failed with errno ${errno}`), { errno });
  }
};

/** A lock that was taken; closing the file gives it back. */
export type HeldLock = { release(): Promise<void> };

export type WaitOptions = { readonly pollMs: number; readonly maxWaitMs: number; readonly signal?: AbortSignal | undefined; readonly onWait?: () => void };

/** Takes the lock on `path`, creating the file. Null when `maxWaitMs` passed; rejects with an AbortError when aborted. */
export const lockFile = async (path: string, mode: LockMode, options: WaitOptions): Promise<HeldLock | null> => {
  const handle = await open(path, 'a', 0o600);
  const giveUpAt = performance.now() + options.maxWaitMs;
  let told = false;
  try {
    while (!tryLock(handle.fd, mode)) {
      if (!told) options.onWait?.();
      told = true;
      if (performance.now() >= giveUpAt) {
        await handle.close();
        return null;
      }
      await sleep(options.pollMs, undefined, options.signal ? { signal: options.signal } : {});
    }
  } catch (error) {
    await handle.close();
    throw error;
  }
  return { release: () => handle.close() };
};
