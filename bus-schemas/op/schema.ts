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

const v = z.literal(1);
const argument = z
  .string()
  .refine((s) => !s.includes('\0'), 'an argument may not contain NUL')
  .refine((s) => Buffer.byteLength(s) < SPEC_LIMITS.argumentBytes, `an argument holds less than ${SPEC_LIMITS.argumentBytes} bytes; use a file or stdin`);
const waitMs = z.number().int().min(0).max(EXEC_LIMITS.longPollMs).default(EXEC_LIMITS.longPollMs);

export const OutputStream = z.enum(['stdout', 'stderr']);
export type OutputStream = z.infer<typeof OutputStream>;

/** Bytes of one stream: produced by the program, kept in the log, and whether some were dropped at the cap. */
export const StreamSummary = z.object({ totalBytes: z.number().int().nonnegative(), storedBytes: z.number().int().nonnegative(), truncated: z.boolean() });
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
});
export type ExecView = z.infer<typeof ExecView>;

const ref = z.strictObject({ v, execId: ExecId });

export const OPS = {
  /**
   * Starts a command, once per client key, and waits up to `waitMs` for its end. Body: stdin, when `stdin` is `bytes`.
   * Answer's body: stdout then stderr from offset 0, at most `inlineOutputBytes` each, lengths in `inline`.
   */
  exec: {
    request: z.strictObject({
      v,
      key: ClientKey,
      /** Exactly one of argv and shell. */
      argv: z.array(argument).min(1).max(SPEC_LIMITS.argumentCount).optional(),
      shell: argument.optional(),
      env: Env.default({}),
      cwd: GuestPath.optional(),
      user: InitUser.optional(),
      stdin: z.enum(['none', 'bytes', 'open']).default('none'),
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
   * `eof`: nothing will follow `offset + body`.
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
  list: { request: z.strictObject({ v }), response: z.object({ execs: z.array(ExecView) }) },
  /** Sends a signal by name without `SIG`. `tree`: to every process that the command started, `setsid` children too (KILL only). */
  signal: {
    request: ref.extend({ signal: z.enum(['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'CONT', 'STOP', 'WINCH']), tree: z.boolean().default(false) }),
    response: z.object({ delivered: z.boolean() }),
  },
  /** Appends to stdin at `offset` (bytes before it are known and skipped, so a repeated message adds nothing); `close` ends it. */
  stdin: {
    request: ref.extend({ offset: z.number().int().nonnegative(), close: z.boolean().default(false) }),
    response: z.object({ nextOffset: z.number().int() }),
  },
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;

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
