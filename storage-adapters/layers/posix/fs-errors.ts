/** The one translation of this adapter's file-system errors into wire errors. */
import { DsecError } from '#bus/errors.ts';

const errnoOf = (error: unknown): string | undefined => (error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined);

export const isAbsent = (error: unknown): boolean => errnoOf(error) === 'ENOENT';

/** `what` completes the sentence "could not …", for example `store image /tmp/a.erofs`. */
export const layerStoreError = (what: string, error: unknown): DsecError => {
  if (error instanceof DsecError) return error;
  if (error instanceof Error && error.name === 'AbortError') return DsecError.of('CANCELLED', `could not ${what}: cancelled`, { cause: error });
  switch (errnoOf(error)) {
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
