/** What an `exec` request means: the checks between its fields, its hash, its form for Aether. Pure. */
import { createHash } from 'node:crypto';
import { DsecError } from '#bus/errors.ts';
import { bodyHashOf, type ExecId } from '#bus/ids.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { OpParsed } from '#bus/op/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { StartRequest } from '../aether/client.ts';
import type { Accepted } from './journal.ts';

export type ExecRequest = OpParsed<'exec'>;
/** What the sandbox gives where a request says nothing. */
export type ExecDefaults = {
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly outputLimitBytes?: number;
  readonly openFiles?: number | undefined;
};

const NO_BYTES = new Uint8Array(0);

const outputLimitOf = (request: ExecRequest, defaults: ExecDefaults): number =>
  request.outputLimitBytes ?? defaults.outputLimitBytes ?? EXEC_LIMITS.outputBytesDefault;

/** Throws INVALID_ARGUMENT. */
export const checkExec = ({ argv, shell, stdin }: ExecRequest, body: Uint8Array): void => {
  if ((argv === undefined) === (shell === undefined)) throw DsecError.of('INVALID_ARGUMENT', 'exec takes exactly one of argv and shell');
  if (stdin !== 'bytes' && body.byteLength > 0)
    throw DsecError.of('INVALID_ARGUMENT', `exec carries ${body.byteLength} bytes of input but stdin is '${stdin}'; set stdin to 'bytes'`);
};

/** Decides "same key, same body". How long a caller waits is not part of what it asks for. */
export const execHash = ({ waitMs: _, ...request }: ExecRequest, body: Uint8Array): string =>
  bodyHashOf({ ...request, body: body.byteLength === 0 ? '' : createHash('sha256').update(body).digest('hex') });

export const acceptedOf = (request: ExecRequest, execId: ExecId, bodyHash: string, at: TimestampMs, defaults: ExecDefaults): Accepted => ({
  v: 1,
  fact: 'accepted',
  execId,
  key: request.key,
  bodyHash,
  at,
  stdin: request.stdin,
  timeoutMs: request.timeoutMs ?? 0,
  outputLimitBytes: outputLimitOf(request, defaults),
  onFull: request.onFull,
  terminal: request.terminal !== undefined,
});

export const startRequestOf = (request: ExecRequest, body: Uint8Array, execId: ExecId, defaults: ExecDefaults): StartRequest => ({
  execId,
  argv: request.argv ?? ['/bin/sh', '-c', request.shell ?? ''],
  env: { ...(request.terminal ? { TERM: 'xterm' } : {}), ...defaults.env, ...request.env },
  cwd: request.cwd ?? defaults.cwd ?? '/',
  user: request.user ?? defaults.user,
  stdin: request.stdin,
  stdinBytes: request.stdin === 'bytes' ? body : NO_BYTES,
  timeoutMs: request.timeoutMs ?? 0,
  outputLimitBytes: outputLimitOf(request, defaults),
  openFiles: defaults.openFiles,
  onFull: request.onFull,
  terminal: request.terminal,
});
