/**
 * The operations of `dsec.op.<project>.<edge>.<sandbox>.<op>`: the data plane, answered by the owning Edge (Chronus).
 * Messages are op frames (`codec.ts`). @paper §3.3
 */
import { z } from 'zod';
import { Fault, Retry, WireError } from '../errors.ts';
import { ClientKey, ExecId } from '../ids.ts';
import { EXEC_LIMITS, SPEC_LIMITS, WIRE_LIMITS } from '../limits.ts';
import { Env, GuestPath, InitUser } from '../sandbox/spec.ts';
import { DurationMs, TimestampMs } from '../units.ts';
import { byteLengthOf } from './byte-path.ts';
import { FILE_OPS } from './files.ts';
import { PORT_OPS } from './ports.ts';

const v = z.literal(1);
const argument = z
  .string()
  .refine((s) => !s.includes('\0'), 'an argument may not contain NUL')
  .refine((s) => !Number.isNaN(byteLengthOf(s)), 'an argument is text, with bytes that are no UTF-8 as lone surrogates U+DC80 to U+DCFF')
  .refine((s) => !(byteLengthOf(s) > SPEC_LIMITS.argumentBytes), `an argument holds at most ${SPEC_LIMITS.argumentBytes} bytes; use a file or stdin`);
const waitMs = z.number().int().min(0).max(EXEC_LIMITS.longPollMs).default(EXEC_LIMITS.longPollMs);

export const OutputStream = z.enum(['stdout', 'stderr']);
export type OutputStream = z.infer<typeof OutputStream>;

/**
 * Why bytes of a stream were dropped, from `storedBytes` on: its log was as long as it may be; it was held back for a reader
 * who then let go of it (`onFull: block`); the node's disk was full.
 */
export const DropReason = z.enum(['limit', 'lease_lost', 'no_space']);
export type DropReason = z.infer<typeof DropReason>;

/** Bytes of one stream that the program wrote, up to which and from which on they are in the log, and whether the newest were dropped. */
export const StreamSummary = z.object({
  totalBytes: z.number().int().nonnegative(),
  storedBytes: z.number().int().nonnegative(),
  /** Bytes below were let go of: by readers that had them (`block`), or because they were the oldest (`roll`). */
  discardedBytes: z.number().int().nonnegative(),
  truncated: z.boolean(),
  dropped: DropReason.nullable(),
});
export type StreamSummary = z.infer<typeof StreamSummary>;

export const ExecReason = z.enum(['exited', 'signaled', 'oom', 'timeout', 'cancelled', 'expired', 'sandbox_died', 'infra']);
export type ExecReason = z.infer<typeof ExecReason>;

/** One command. `exitCode` is null until it ended, and stays null when no exit record exists: unknown is never 0. */
export const ExecView = z.object({
  execId: ExecId,
  state: z.enum(['running', 'ended']),
  startedAt: TimestampMs,
  endedAt: TimestampMs.nullable(),
  /** 0…255; 128 + n for a death by signal n. */
  exitCode: z.number().int().nullable(),
  signal: z.string().nullable(),
  reason: ExecReason.nullable(),
  fault: Fault.nullable(),
  retry: Retry.nullable(),
  stdout: StreamSummary,
  stderr: StreamSummary,
  /** A child of the ended command still holds its pipes. */
  pipesOpen: z.boolean(),
  /** Processes of the command that the kernel killed for memory, as far as that is known. */
  oomKills: z.number().int().nonnegative(),
  /** It runs on a terminal: stdout is all that is printed, stdin is what is typed. */
  terminal: z.boolean(),
  /** Not run here: answered from the record of the lost sandbox that this one was recovered from. */
  replayed: z.boolean().default(false),
});
export type ExecView = z.infer<typeof ExecView>;

const ref = z.strictObject({ v, execId: ExecId });

/** POSIX, and what Linux adds; real-time signals have no names that are the same everywhere. */
export const SignalName = z.enum([
  ...(['HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'KILL', 'USR1', 'SEGV', 'USR2', 'PIPE', 'ALRM', 'TERM'] as const),
  ...(['STKFLT', 'CHLD', 'CONT', 'STOP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'XCPU', 'XFSZ', 'VTALRM', 'PROF', 'WINCH', 'IO', 'PWR', 'SYS'] as const),
]);
export type SignalName = z.infer<typeof SignalName>;

const lines = z.number().int().min(1).max(EXEC_LIMITS.terminalLinesMax);
export const TerminalSize = z.strictObject({ rows: lines, columns: lines });
export type TerminalSize = z.infer<typeof TerminalSize>;

/**
 * What happens when the log of a stream is full. `truncate`: what follows is counted and dropped. `block`: the program waits while
 * a reader holds credit, the log is a window that moves with its readers; without one, as `truncate`. `roll`: as `block`,
 * but without a reader the oldest bytes are dropped: for terminals and shells, which go on for ever.
 */
export const OnFull = z.enum(['truncate', 'block', 'roll']);
export type OnFull = z.infer<typeof OnFull>;
/** One reader of one command's stream, named by its client. */
export const ReaderId = z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/, 'a reader is named by 1 to 40 letters, digits, _ or -');

const EXEC_OPS = {
  /**
   * Starts a command, once per client key, and waits up to `waitMs` for its end. Body: stdin, when `stdin` is `bytes`.
   * Answer's body: stdout then stderr from their first kept byte, at most `inlineOutputBytes` each, lengths in `inline`.
   */
  exec: {
    request: z.strictObject({
      v,
      key: ClientKey,
      /** Exactly one of argv and shell. */
      argv: z
        .array(argument)
        .min(1, 'a command needs at least the name of a program')
        .max(SPEC_LIMITS.argumentCount, `at most ${SPEC_LIMITS.argumentCount} arguments; use a file or stdin, with xargs for instance`)
        .optional(),
      shell: argument.optional(),
      env: Env.default({}),
      cwd: GuestPath.optional(),
      user: InitUser.optional(),
      stdin: z.enum(['none', 'bytes', 'open']).default('none'),
      terminal: TerminalSize.optional(),
      onFull: OnFull.default('truncate'),
      timeoutMs: DurationMs.min(1).max(EXEC_LIMITS.timeoutMsMax).optional(),
      /** Absent: the sandbox's own `outputBytes`. */
      outputLimitBytes: z.number().int().min(0).max(EXEC_LIMITS.outputBytesMax).optional(),
      waitMs,
    }),
    response: z.object({ exec: ExecView, inline: z.object({ stdoutBytes: z.number().int(), stderrBytes: z.number().int() }) }),
  },
  /** Waits up to `waitMs` for the end of a command. Answer's body as for `exec`. */
  wait: {
    request: ref.extend({ waitMs }),
    response: z.object({ exec: ExecView, inline: z.object({ stdoutBytes: z.number().int(), stderrBytes: z.number().int() }) }),
  },
  /**
   * Bytes of one output log from `offset`, in the answer's body; waits up to `waitMs` for the first new byte or the end.
   * `eof`: nothing will follow `offset + body`. OUTPUT_EXPIRED when bytes from `offset` on are no longer kept; `details.firstByte`
   * is the first one that is, or null.
   */
  read: {
    request: ref.extend({
      stream: OutputStream,
      offset: z.number().int().nonnegative(),
      maxBytes: z.number().int().min(1).max(WIRE_LIMITS.maxChunkBytes).default(WIRE_LIMITS.maxChunkBytes),
      waitMs,
    }),
    response: z.object({ offset: z.number().int(), eof: z.boolean(), summary: StreamSummary, ended: z.boolean() }),
  },
  /**
   * A reader takes or renews its credit on a stream whose program may be held back, and says what it has: all below `consumed` may
   * be let go of when all readers have passed it. Credit ends by `release`, or `leaseMs` after the last word. A reader that is new
   * begins at `summary.discardedBytes` or later. `windowBytes`: how much the log holds.
   */
  credit: {
    request: ref.extend({ stream: OutputStream, reader: ReaderId, consumed: z.number().int().nonnegative(), release: z.boolean().default(false) }),
    response: z.object({ leaseMs: z.number().int(), windowBytes: z.number().int(), summary: StreamSummary, ended: z.boolean() }),
  },
  /** New size of a command's terminal. `applied` is false when it has none, or has ended. */
  resize: { request: ref.extend({ terminal: TerminalSize }), response: z.object({ applied: z.boolean() }) },
  list: { request: z.strictObject({ v }), response: z.object({ execs: z.array(ExecView) }) },
  /**
   * Sends a signal by name without `SIG`. `tree`: to every process that the command started, `setsid` children too (KILL only);
   * with `sinceInput` only to those that were started after its newest input, and not to the first one. `abandon`, with KILL and
   * `tree`: a start of this id that is still on its way is refused for a while, so that nothing runs for a caller who has left.
   */
  signal: {
    request: ref.extend({
      signal: SignalName,
      tree: z.boolean().default(false),
      sinceInput: z.boolean().default(false),
      abandon: z.boolean().optional(),
    }),
    response: z.object({ delivered: z.boolean() }),
  },
  /** Appends to stdin at `offset` (bytes before it are known and skipped, so a repeated message adds nothing); `close` ends it. */
  stdin: {
    request: ref.extend({ offset: z.number().int().nonnegative(), close: z.boolean().default(false) }),
    response: z.object({ nextOffset: z.number().int() }),
  },
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;
export type ExecOpName = keyof typeof EXEC_OPS;

export const OPS = { ...EXEC_OPS, ...FILE_OPS, ...PORT_OPS } as const;

export type OpName = keyof typeof OPS;
export type OpRequest<O extends OpName> = z.input<(typeof OPS)[O]['request']>;
export type OpParsed<O extends OpName> = z.output<(typeof OPS)[O]['request']>;
export type OpResponse<O extends OpName> = z.output<(typeof OPS)[O]['response']>;
export const isOpName = (op: string): op is OpName => Object.hasOwn(OPS, op);

/** Meta of an answer. */
export const OpAnswer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: WireError }),
]);
export type OpAnswer = z.infer<typeof OpAnswer>;
