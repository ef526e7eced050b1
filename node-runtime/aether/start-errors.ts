/** The one translation of Aether's start failures into the error registry. */
import { constants } from 'node:os';
import { DsecError } from '#bus/errors.ts';
import type { ErrorCode } from '#bus/errors.ts';
import type { StartFailure } from './wire.ts';

type What = { readonly program: string; readonly user: string; readonly cwd: string };
type Row = readonly [ErrorCode, (what: What, errno: string) => string];

const ROWS: Record<Exclude<StartFailure, 'known'>, Row> = {
  user: ['USER_NOT_FOUND', ({ user }) => `user '${user}' is not in the sandbox's /etc/passwd or outside its id range; name another user`],
  cwd: ['CWD_NOT_FOUND', ({ cwd }, errno) => `working directory '${cwd}' cannot be entered (${errno}); create it or name another`],
  'not-found': ['COMMAND_NOT_FOUND', ({ program }) => `program '${program}' is not in the sandbox; check its name and PATH`],
  'not-executable': [
    'COMMAND_NOT_EXECUTABLE',
    ({ program }, errno) => `'${program}' is there but cannot be executed (${errno}); check its mode, format and interpreter`,
  ],
  pids: ['PIDS_LIMIT', () => `the sandbox's limit of processes is reached; end some or create it with a higher limit`],
  'no-space': ['NO_SPACE', () => 'the node has no space for the log of the command; free some and try again'],
  busy: ['OVERLOADED', () => `the sandbox has as many commands as its agent serves at once; wait for some to end`],
  other: ['START_FAILED', ({ program }, errno) => `'${program}' could not be started (${errno})`],
};

const nameOf = (errno: number): string => Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;

export const startError = (failure: Exclude<StartFailure, 'known'>, errno: number, what: What): DsecError => {
  if (failure === 'other' && errno === constants.errno.E2BIG) {
    return DsecError.of('PAYLOAD_TOO_LARGE', 'arguments and environment are more than the kernel takes for one program; use a file or stdin');
  }
  const [code, message] = ROWS[failure];
  return DsecError.of(code, message(what, nameOf(errno)), { details: { errno: nameOf(errno) } });
};
