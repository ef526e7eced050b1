/** The one translation of this adapter's file-system errors into wire errors. */
import { DsecError } from '#bus/errors.ts';

const errnoOf = (error: unknown): string | undefined => (error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined);

/** The directory is there, and what it lies on is not: a shared file system that is away, a disk that has failed or was made read-only. */
const AWAY: ReadonlySet<string> = new Set([
  'EIO',
  'EROFS',
  'ESTALE',
  'ENOTCONN',
  'ENODEV',
  'ENXIO',
  'ESHUTDOWN',
  'ETIMEDOUT',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'EUCLEAN',
]);
export const isStoreAway = (errno: string): boolean => AWAY.has(errno);
export const storeAway = (what: string, errno: string, cause?: unknown): DsecError =>
  DsecError.of(
    'LAYER_STORE_UNAVAILABLE',
    `could not ${what}: the layer store's file system does not take it (${errno}); mount it anew or see to its disk, then repeat`,
    {
      details: { errno },
      cause,
    },
  );

export const isAbsent = (error: unknown): boolean => errnoOf(error) === 'ENOENT';

/** `what` completes the sentence "could not …", for example `store image /tmp/a.erofs`. */
export const layerStoreError = (what: string, error: unknown): DsecError => {
  if (error instanceof DsecError) return error;
  if (error instanceof Error && error.name === 'AbortError') return DsecError.of('CANCELLED', `could not ${what}: cancelled`, { cause: error });
  const errno = errnoOf(error);
  if (errno !== undefined && isStoreAway(errno)) return storeAway(what, errno, error);
  switch (errno) {
    case 'ENOSPC':
    case 'EDQUOT':
      return DsecError.of('NO_SPACE', `could not ${what}: the disk is full; remove images (image rm, then image gc) or give the data directory more space`, {
        cause: error,
      });
    case 'EISDIR':
    case 'ENOENT':
    case 'ENOTDIR':
    case 'EACCES':
    case 'EPERM':
      return DsecError.of('INVALID_ARGUMENT', `could not ${what}: ${(error as Error).message}`, { cause: error });
    default:
      return DsecError.of('INTERNAL', `could not ${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
};
