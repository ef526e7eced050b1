/** One platform per data directory, and per run directory. */
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { lockFile } from '../../file-lock.ts';

/** Takes the lock or says who should be stopped first; answers with the function that gives it back. */
export const lockDataDir = (dataDir: string): (() => void) => {
  const fd = lockFile(join(dataDir, 'lock'));
  if (fd === null) throw DsecError.of('HOST_UNFIT', `another platform runs on ${dataDir}; stop it, or start this one with another --data-dir and --run-dir`);
  return () => closeSync(fd);
};

/** The end of a platform empties its run directory, and its launcher listens there: two of them would end each other. */
export const lockRunDir = (runDir: string): (() => void) => {
  const fd = lockFile(join(runDir, 'up.lock'));
  if (fd === null) throw DsecError.of('HOST_UNFIT', `another platform uses the run directory ${runDir}; stop it, or start this one with another --run-dir`);
  return () => closeSync(fd);
};
