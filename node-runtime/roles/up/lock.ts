/** One platform per data directory. */
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
