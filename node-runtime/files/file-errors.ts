/** The one place where what a worker says becomes an error of the platform: by reason and error number. */
import { constants } from 'node:os';
import { DsecError, type ErrorCode } from '#bus/errors.ts';
import type { DoneBefore, Failure } from './wire.ts';

const { errno } = constants;

const CODES: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [errno.ENOENT, 'FILE_NOT_FOUND'],
  [errno.EEXIST, 'FILE_EXISTS'],
  [errno.ENOTDIR, 'NOT_A_DIRECTORY'],
  [errno.EISDIR, 'IS_A_DIRECTORY'],
  [errno.ENOTEMPTY, 'DIRECTORY_NOT_EMPTY'],
  [errno.ELOOP, 'TOO_MANY_LINKS'],
  [errno.EACCES, 'PERMISSION_DENIED'],
  [errno.EPERM, 'PERMISSION_DENIED'],
  [errno.EROFS, 'PERMISSION_DENIED'],
  [errno.ENOSPC, 'NO_SPACE'],
  [errno.EDQUOT, 'NO_SPACE'],
  [errno.ENAMETOOLONG, 'INVALID_ARGUMENT'],
  [errno.EINVAL, 'INVALID_ARGUMENT'],
  [errno.E2BIG, 'INVALID_ARGUMENT'],
  [errno.EXDEV, 'CROSSES_FILE_SYSTEMS'],
  [errno.EBUSY, 'FILE_BUSY'],
  [errno.ETXTBSY, 'FILE_BUSY'],
  [errno.EFBIG, 'FILE_TOO_LARGE'],
  [errno.ENFILE, 'OVERLOADED'],
  [errno.EMFILE, 'OVERLOADED'],
]);

const NAMES = new Map(Object.entries(errno).map(([name, number]) => [number, name]));

/** What each code means to the reader, after "cannot read /path: ". */
const WHY: Partial<Record<ErrorCode, string>> = {
  FILE_NOT_FOUND: 'there is no such file or directory',
  FILE_EXISTS: 'it exists already',
  NOT_A_DIRECTORY: 'a part of the path that has to be a directory is none',
  IS_A_DIRECTORY: 'it is a directory',
  DIRECTORY_NOT_EMPTY: 'the directory is not empty; ask for its removal with all that it holds',
  TOO_MANY_LINKS: 'symbolic links lead in a circle or too far',
  PERMISSION_DENIED: 'the user may not do this here; name another user',
  NO_SPACE: 'the file system is full, the file that was there before is unchanged; remove something and try again',
  INVALID_ARGUMENT: 'the name or the request is not possible for this file system',
  CROSSES_FILE_SYSTEMS: 'both names must lie in one file system; copy and remove instead',
  FILE_BUSY: 'it is in use, or it is a mount point',
  FILE_TOO_LARGE: 'the file system takes no file of this size',
  OVERLOADED: 'the sandbox has too many files open; try again',
};

/** `what`: the request in words, such as "read /etc/passwd". `done`: what was done before it failed, and stays. */
export const fileError = (what: string, failure: Failure, done?: DoneBefore): DsecError => {
  const error = errorOf(what, failure);
  if (!done) return error;
  const { message, details, ...rest } = error.toWire();
  const count = done.entries === 0 ? 'its directory' : done.entries === 1 ? '1 entry' : `${done.entries} entries`;
  const size = done.bytes > 0 ? ` with ${done.bytes} bytes` : '';
  const said = `${count}${size} ${done.entries > 1 ? 'were done before it and stay so' : 'was done before it and stays so'}`;
  return new DsecError({ ...rest, message: `${message}; ${said}`, details: { ...details, done }, outcome: 'unknown' });
};

const errorOf = (what: string, { reason, errno: number, path }: Failure): DsecError => {
  const name = NAMES.get(number) ?? `error ${number}`;
  const details = { ...(path === '' ? {} : { path }), ...(number === 0 ? {} : { errno: name }) };
  const where = path === '' ? '' : ` at ${JSON.stringify(path)}`;
  switch (reason) {
    case 'not-regular':
      return DsecError.of(
        'NOT_REGULAR',
        `cannot ${what}: it is a device, a FIFO or a socket, not a file${what.startsWith('read ') ? '; of a character device a limited number of bytes can be read' : ''}`,
        { details },
      );
    case 'no-user':
      return DsecError.of('USER_NOT_FOUND', `cannot ${what}: the sandbox has no such user; see its /etc/passwd`, { details });
    case 'no-process':
      return DsecError.of('PIDS_LIMIT', `cannot ${what}: the sandbox has as many processes as it may; end some or raise its limit`, { details });
    case 'unsafe-entry':
      return DsecError.of('UNSAFE_ENTRY', `cannot ${what}: entry ${JSON.stringify(path)} would leave the destination or goes through a symbolic link`, {
        details: { entry: path },
      });
    case 'bad-archive':
      return DsecError.of('BAD_ARCHIVE', `cannot ${what}: this is not a whole tar archive${where}`, {
        details: { entry: path },
      });
    case 'malformed':
      return DsecError.of('INTERNAL', `cannot ${what}: the agent of the sandbox did not understand the request`, { details });
    case 'errno': {
      const code = CODES.get(number) ?? 'FILE_FAILED';
      return DsecError.of(code, `cannot ${what}${where}: ${WHY[code] ?? 'the kernel refused it'} (${name})`, { details });
    }
  }
};

export const workerGone = (what: string): DsecError =>
  DsecError.of('FILE_FAILED', `cannot ${what}: the process that serves files was ended inside the sandbox, by a signal or for memory; try again`, {
    retry: 'later',
  });
