/** An advisory lock on a file, which the kernel drops when its holder dies, however it dies. */
import { closeSync, openSync } from 'node:fs';
import koffi from 'koffi';

const LOCK_EX = 2;
const LOCK_NB = 4;

/** The open file that holds the lock, to be closed by whoever took it; null when another process has it. */
export const lockFile = (file: string): number | null => {
  const fd = openSync(file, 'a+', 0o600);
  const flock = koffi.load('libc.so.6').func('int flock(int, int)');
  if (flock(fd, LOCK_EX | LOCK_NB) === 0) return fd;
  closeSync(fd);
  return null;
};
