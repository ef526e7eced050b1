/**
 * Advisory locks that die with their holder: flock(2) on an open file. Node has no call for it, so libc is asked directly.
 * Descriptors of Node are close-on-exec, so no child process ever keeps a lock alive.
 */
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
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

export type HeldLock = {
  release(): Promise<void>;
  /** Gives it back and removes the file; whoever waits for it notices and starts over with a new file. */
  releaseAndRemove(): Promise<void>;
};

export type WaitOptions = { readonly pollMs: number; readonly maxWaitMs: number; readonly signal?: AbortSignal | undefined; readonly onWait?: () => void };

/** Takes the lock on `path`, creating the file. Null when `maxWaitMs` passed; rejects with an AbortError when aborted. */
export const lockFile = async (path: string, mode: LockMode, options: WaitOptions): Promise<HeldLock | null> => {
  const giveUpAt = performance.now() + options.maxWaitMs;
  let told = false;
  for (;;) {
    const handle = await open(path, 'a', 0o600);
    try {
      if (tryLock(handle.fd, mode) && (await isStillAt(handle, path))) return heldBy(handle, path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    if (performance.now() >= giveUpAt) return null;
    if (!told) options.onWait?.();
    told = true;
    await sleep(options.pollMs, undefined, options.signal ? { signal: options.signal } : {});
  }
};

const heldBy = (handle: FileHandle, path: string): HeldLock => ({
  release: () => handle.close(),
  releaseAndRemove: async () => {
    await rm(path, { force: true });
    await handle.close();
  },
});

/** The holder before may have removed the file; a lock on a file that has no name excludes nobody. */
const isStillAt = async (handle: FileHandle, path: string): Promise<boolean> => {
  const [held, named] = await Promise.all([handle.stat(), stat(path).catch(() => null)]);
  return named !== null && named.ino === held.ino && named.dev === held.dev;
};
