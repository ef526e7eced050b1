/** Options of one command in the caller's words, checked before anything is sent, and the wire request they make. */
import { z } from 'zod';
import { invalid } from '#bus/envelope.ts';
import { ClientKey } from '#bus/ids.ts';
import { EXEC_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import { OnFull, OPS, type OpRequest, TerminalSize } from '#bus/op/schema.ts';
import { Env, GuestPath, InitUser } from '#bus/sandbox/spec.ts';
import { safeParse } from '#bus/proof.ts';
import { randomKey } from '../transport/clock.ts';
import { toBytes } from './text.ts';

const bytes = z.union([z.string(), z.instanceof(Uint8Array)], 'must be a string or a Uint8Array');

const fields = {
  env: Env.optional(),
  /** Working directory, absolute; the image's own when absent. */
  cwd: GuestPath.optional(),
  /** A name of the image, a uid, or `uid:gid`; the sandbox's `initUser` when absent. */
  user: InitUser.optional(),
  /** Milliseconds after which the command and everything it started are killed; the result's reason is then `timeout`. */
  timeoutMs: z.number().int().min(1, 'must be at least 1 ms').max(EXEC_LIMITS.timeoutMsMax).optional(),
  /** Bytes kept of each stream; more is counted, dropped and flagged. */
  outputLimitBytes: z.number().int().min(0).max(EXEC_LIMITS.outputBytesMax).optional(),
  /** Runs it on a terminal of this size: its output is then one stream, stdout, and its input is typed. */
  terminal: TerminalSize.optional(),
  /** Names this command in its sandbox: the same key never runs it twice. Random when absent. */
  key: ClientKey.optional(),
  /** Ends the call with CANCELLED and kills the command. */
  signal: z.instanceof(AbortSignal).optional(),
};
const ExecSchema = z.strictObject({ ...fields, /** Whole input; without it the command reads end-of-file at once. */ stdin: bytes.optional() });
const StartSchema = z.strictObject({
  ...fields,
  /** `open`: written to later through `command.stdin`. */ stdin: z.union([z.literal('open'), bytes], 'must be "open", or bytes in exec').optional(),
  /**
   * What happens when a stream's log is full (`outputLimitBytes`). `truncate` (default): what follows is counted and dropped.
   * `block`: the program waits for the readers of this client, which get every byte; a stream that nobody reads, or whose readers
   * have gone, is truncated after all. `roll`: as `block`, but without readers the oldest bytes go: for programs that run for ever.
   */
  onFull: OnFull.optional(),
});

type Loose<T> = { [K in keyof T]?: T[K] | undefined };
export type ExecOptions = Loose<Omit<z.input<typeof ExecSchema>, 'key'>> & { key?: string | undefined };
export type StartOptions = Loose<Omit<z.input<typeof StartSchema>, 'key' | 'stdin'>> & { key?: string | undefined; stdin?: 'open' | Uint8Array | undefined };

/** argv, or a script for the image's `/bin/sh`. */
export type Program = { readonly argv: readonly string[] } | { readonly shell: string };

export type CommandOrder = {
  readonly key: ClientKey;
  readonly wire: Omit<OpRequest<'exec'>, 'v' | 'waitMs'>;
  /** Sent with the request. */
  readonly body: Uint8Array | undefined;
  /** Too large for the request: fed through `stdin` and then closed. */
  readonly feed: Uint8Array | undefined;
  readonly signal: AbortSignal | undefined;
};

export const execOrder = (program: Program, options: ExecOptions): CommandOrder => orderOf(program, parse(ExecSchema, options));
export const startOrder = (program: Program, options: StartOptions): CommandOrder => orderOf(program, parse(StartSchema, options));

const parse = <T>(schema: z.ZodType<T>, options: object): T => {
  const parsed = schema.safeParse(Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'options of the command', parsed.error);
  return parsed.data;
};

/** What argv, env and the rest may take of a message beside inline stdin. */
const INLINE_STDIN_BYTES = WIRE_LIMITS.maxChunkBytes;

const orderOf = (program: Program, options: z.output<typeof StartSchema>): CommandOrder => {
  const { key = randomKey() as ClientKey, stdin, signal, ...rest } = options;
  const input = stdin === undefined || stdin === 'open' ? undefined : toBytes(stdin);
  const inline = input !== undefined && input.byteLength <= INLINE_STDIN_BYTES;
  const mode = stdin === undefined ? 'none' : inline ? 'bytes' : 'open';
  const run = 'argv' in program ? { argv: [...program.argv] } : { shell: program.shell };
  const wire = { ...run, ...rest, key, stdin: mode } as Omit<OpRequest<'exec'>, 'v' | 'waitMs'>;
  const checked = safeParse(OPS.exec.request, { v: 1, ...wire });
  if (!checked.success) throw invalid('INVALID_ARGUMENT', 'command', checked.error);
  return { key, wire, body: inline ? input : undefined, feed: inline ? undefined : input, signal };
};
