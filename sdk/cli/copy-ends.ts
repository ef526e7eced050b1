/** The two ends of `dsec cp`: which is the sandbox's, and what the names mean. Pure. */
import { DsecError } from '#bus/errors.ts';

export type CopyEnd = { readonly kind: 'path' | 'stream'; readonly path: string };
export type CopyEnds = { readonly sandbox: string; readonly into: boolean; readonly from: CopyEnd; readonly to: CopyEnd };

/** `sb-…:/path`. A local name that looks like one is written with `./` before it. */
const REMOTE = /^(sb-[a-z0-9_-]+):(.*)$/s;

const endOf = (word: string): CopyEnd => ({ kind: word === '-' ? 'stream' : 'path', path: word });

export const copyEnds = (source: string, destination: string): CopyEnds => {
  const [from, to] = [REMOTE.exec(source), REMOTE.exec(destination)];
  if ((from === null) === (to === null))
    throw DsecError.of(
      'INVALID_ARGUMENT',
      'one of source and destination is in a sandbox, SANDBOX:PATH, and the other is not; copy between two sandboxes by a pipe',
    );
  const [, sandbox = '', path = ''] = from ?? to ?? [];
  if (!path.startsWith('/')) throw DsecError.of('INVALID_ARGUMENT', `${sandbox}:${path}: the path in the sandbox must be absolute`);
  const inside: CopyEnd = { kind: 'path', path };
  return from ? { sandbox, into: false, from: inside, to: endOf(destination) } : { sandbox, into: true, from: endOf(source), to: inside };
};

/** `dir/.`: what it holds, not it itself. */
export const namesContent = (path: string): boolean => path === '.' || path.endsWith('/.');

export const childOf = (directory: string, name: string): string => `${directory.replace(/\/+$/, '')}/${name}`;
