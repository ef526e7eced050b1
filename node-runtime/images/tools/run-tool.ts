/**
 * Runs one of the programs that make images (tar, mmdebstrap, mkfs.erofs, npm, …) as a child that cannot outlive us.
 *
 * The child leads its own process group; an abort asks the group to end and then kills it, and the kernel kills the child
 * when this process dies, however it dies. Output lines go to a callback; what a failed tool said last goes into the error.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { DsecError } from '#bus/errors.ts';
import { IMAGE_LIMITS } from '../limits.ts';
import { eachLine } from './lines.ts';

export type ToolRun = {
  /** Program and arguments; found on PATH. */
  readonly command: readonly [string, ...string[]];
  /** Completes "could not …" in errors. */
  readonly doing: string;
  /** The tool that a wrapper in `command` starts. */
  readonly program?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Lines of standard error and, unless `collect`, of standard output. */
  readonly onLine?: (line: string) => void;
  /** Called for each line of standard output instead of `onLine`; must be quick. */
  readonly onOutputLine?: (line: string) => void;
  /** Return standard output as text. */
  readonly collect?: boolean;
  /** What a failure of this tool means, where its output tells more than "the input was wrong". */
  readonly explain?: (failure: ToolFailure) => DsecError | undefined;
};

/** `words`: the end of standard error on one line. `output` only with `collect`. */
export type ToolFailure = { readonly ending: string; readonly words: string; readonly output: string };

/** Resolves with standard output when `collect`. HOST_UNFIT, NO_SPACE, CANCELLED, what `explain` says, or INVALID_ARGUMENT with the tool's own words. */
export const runTool = async (run: ToolRun): Promise<string> => {
  if (run.signal?.aborted) throw cancelled(run);
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...run.command], {
    ...(run.cwd === undefined ? {} : { cwd: run.cwd }),
    env: { ...process.env, LC_ALL: 'C.UTF-8', ...run.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const stopListening = stopOnAbort(child, run.signal);
  try {
    const [ending, output, tail] = await Promise.all([endOf(child), outputOf(child.stdout as Readable, run), tailOf(child, run.onLine)]);
    if (run.signal?.aborted) throw cancelled(run);
    if (ending !== 0) throw toolFailed(run, ending, tail, output);
    return output;
  } finally {
    stopListening();
    killGroup(child, 'SIGKILL'); // nothing, unless reading its output failed
  }
};

const endOf = (child: ChildProcess): Promise<number | string> =>
  new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(DsecError.of('HOST_UNFIT', `setpriv (package util-linux) is not installed; run infra/setup`, { cause })));
    child.once('close', (code, signal) => resolve(signal ?? code ?? 'unknown'));
  });

/** Returns how to stop listening. */
const stopOnAbort = (child: ChildProcess, signal: AbortSignal | undefined): (() => void) => {
  if (!signal) return () => {};
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    killGroup(child, 'SIGTERM');
    timer = setTimeout(() => killGroup(child, 'SIGKILL'), IMAGE_LIMITS.toolGraceMs);
  };
  signal.addEventListener('abort', stop, { once: true });
  return () => {
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
  };
};

const killGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // the group has just ended
  }
};

/** mkfs.erofs 1.8 says that the disk is full and then waits for itself for ever. */
const DISK_FULL = /No space left on device|Disk quota exceeded|ENOSPC/;

const tailOf = async (child: ChildProcess, onLine: ((line: string) => void) | undefined): Promise<string> => {
  let tail = '';
  let stuck: NodeJS.Timeout | undefined;
  await eachLine(child.stderr as Readable, IMAGE_LIMITS.toolLineBytes, (line) => {
    tail = `${tail}${line}\n`.slice(-IMAGE_LIMITS.toolErrorBytes);
    if (DISK_FULL.test(line)) stuck ??= setTimeout(() => killGroup(child, 'SIGKILL'), IMAGE_LIMITS.toolGraceMs);
    onLine?.(line);
  }).finally(() => clearTimeout(stuck));
  return tail.trim();
};

const outputOf = async (stream: Readable, run: ToolRun): Promise<string> => {
  if (run.collect) return textOf(stream, run);
  await eachLine(stream, IMAGE_LIMITS.toolLineBytes, run.onOutputLine ?? run.onLine ?? (() => {}));
  return '';
};

const textOf = async (stream: Readable, run: ToolRun): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > IMAGE_LIMITS.toolOutputBytes)
      throw DsecError.of('INTERNAL', `could not ${run.doing}: ${run.command[0]} printed more than ${IMAGE_LIMITS.toolOutputBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};

const cancelled = (run: ToolRun): DsecError => DsecError.of('CANCELLED', `could not ${run.doing}: cancelled`, { outcome: 'not_applied' });

/** setpriv's exit code when there is no such program. */
const NOT_FOUND = 127;

/** These programs give one code for every failure, so their words (in the C locale) are the only thing that tells a full disk apart. */
const toolFailed = (run: ToolRun, code: number | string, tail: string, output: string): DsecError => {
  const program = run.program ?? run.command[0];
  if (code === NOT_FOUND) return missingTool(program);
  if (DISK_FULL.test(tail))
    return DsecError.of(
      'NO_SPACE',
      `could not ${run.doing}: the disk is full; remove images (dsec image rm, then dsec image gc) or free space in the data directory`,
    );
  const failure: ToolFailure = { ending: typeof code === 'number' ? `exit ${code}` : code, words: onOneLine(tail), output };
  const said = failure.words === '' ? '' : `: ${failure.words}`;
  return (
    run.explain?.(failure) ??
    DsecError.of('INVALID_ARGUMENT', `could not ${run.doing}: ${program} failed (${failure.ending})${said}`, { details: { program, code, tail } })
  );
};

/** The last words come last, and a message is one line. */
const onOneLine = (tail: string): string => tail.replace(/\s*\n\s*/g, '; ').slice(-IMAGE_LIMITS.toolMessageCharacters);

/** Debian's package of each program, where the names differ. */
const PACKAGES: Readonly<Record<string, string>> = {
  'mkfs.erofs': 'erofs-utils',
  unshare: 'util-linux',
  'apt-get': 'apt',
  'apt-config': 'apt',
  xz: 'xz-utils',
};

export const missingTool = (program: string): DsecError =>
  DsecError.of('HOST_UNFIT', `${program} is not installed; install the package ${PACKAGES[program] ?? program} and try again`, { details: { program } });
