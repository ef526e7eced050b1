/** One platform per data directory: an advisory lock that the kernel drops when its holder dies. */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { DsecError } from '#bus/errors.ts';

const LOCK_EX = 2;
const LOCK_NB = 4;

/** Takes the lock or says who should be stopped first; answers with the function that gives it back. */
export const lockDataDir = (dataDir: string): (() => void) => {
  const file = join(dataDir, 'lock');
  const fd = openSync(file, 'a', 0o600);
  const flock = koffi.load('libc.so.6').func('int flock(int, int)');
  if (flock(fd, LOCK_EX | LOCK_NB) !== 0) {
    closeSync(fd);
    throw DsecError.of('HOST_UNFIT', `another platform runs on ${dataDir}; stop it, or start this one with another --data-dir and --run-dir`);
  }
  return () => closeSync(fd);
};
