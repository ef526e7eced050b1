/**
 * A command in a sandbox: started once per client key, then waited for, read from, written to and signalled by its id,
 * from this or any other client, across restarts of the Edge. @paper §3.3
 */
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, type ExecId, type SandboxId, execIdFor } from '#bus/ids.ts';
import type { ExecView, SignalName, StreamSummary, TerminalSize } from '#bus/op/schema.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Session } from '../session.ts';
import { type OpResult, longPollMs } from '../transport/op-client.ts';
import type { CommandOrder } from './exec-options.ts';
import { ExecEnd, ExecResult } from './exec-result.ts';
import { OutputReader } from './output-reader.ts';
import { StdinWriter } from './stdin-writer.ts';

type Answer = OpResult<'exec'> | OpResult<'wait'>;
/** How long an Edge that does not answer is asked again; a minute when absent. */
export type Patience = { readonly giveUpAfterMs?: number | undefined };

export class Command {
  readonly sandboxId: SandboxId;
  readonly execId: ExecId;
  /** Undefined for a command attached to by its id. */
  readonly key: ClientKey | undefined;
  readonly stdout: OutputReader;
  readonly stderr: OutputReader;
  readonly stdin: StdinWriter;
  readonly #session: Session;

  /** `order`: what it was started with, by this client. */
  constructor(session: Session, sandboxId: SandboxId, execId: ExecId, order?: CommandOrder) {
    this.#session = session;
    this.sandboxId = sandboxId;
    this.execId = execId;
    this.key = order?.key;
    const target = { ops: session.ops, clock: session.clock, sandboxId, execId, signal: order?.signal };
    const credit = (order?.wire.onFull ?? 'truncate') !== 'truncate';
    this.stdout = new OutputReader({ ...target, stream: 'stdout' }, { credit });
    this.stderr = new OutputReader({ ...target, stream: 'stderr' }, { credit });
    this.stdin = new StdinWriter({ ...target, resume: order === undefined });
  }

  /** How it stands now. */
  async view(): Promise<ExecView> {
    return (await this.#session.ops.call(this.sandboxId, 'wait', { execId: this.execId }, { waitMs: 0 })).data.exec;
  }

  /** Resolves when the command has ended, however long that takes; the output stays in the sandbox's log. */
  async wait(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<ExecEnd> {
    return new ExecEnd((await untilEnded(this.#session, this.sandboxId, this.execId, undefined, options.signal)).data.exec);
  }

  /** As `wait`, with the output that was kept. */
  async result(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<ExecResult> {
    return collect(this, await untilEnded(this.#session, this.sandboxId, this.execId, undefined, options.signal));
  }

  /** New size of its terminal; the kernel tells the program by WINCH. False when it has no terminal, or has ended. */
  async resize(terminal: TerminalSize): Promise<boolean> {
    return (await this.#session.ops.call(this.sandboxId, 'resize', { execId: this.execId, terminal })).data.applied;
  }

  /** True when the signal reached the command. Repeated only when it certainly was not delivered. */
  async signal(signal: SignalName, options: Patience = {}): Promise<boolean> {
    const call = { ...options, idempotent: signal === 'KILL' };
    return (await this.#session.ops.call(this.sandboxId, 'signal', { execId: this.execId, signal }, call)).data.delivered;
  }

  /** Kills what the command has started since its newest input, but not the command itself. True when there was something. */
  async killSinceInput(): Promise<boolean> {
    const request = { execId: this.execId, signal: 'KILL', tree: true, sinceInput: true } as const;
    return (await this.#session.ops.call(this.sandboxId, 'signal', request)).data.delivered;
  }

  /** Kills everything that the command started, processes in sessions of their own too. */
  async kill({
    abandon,
    ...patience
  }: Patience & { /** A start of it that is still on its way is refused. */ readonly abandon?: boolean } = {}): Promise<boolean> {
    const request = { execId: this.execId, signal: 'KILL', tree: true, ...(abandon ? { abandon } : {}) } as const;
    return (await this.#session.ops.call(this.sandboxId, 'signal', request, patience)).data.delivered;
  }
}

/** Starts it and returns as soon as it runs. Aborting kills it. */
export const startCommand = async (session: Session, sandboxId: SandboxId, order: CommandOrder): Promise<Command> => {
  const command = new Command(session, sandboxId, execIdFor(sandboxId, order.key), order);
  await killedOnAbort(command, order, () => sendExec(session, sandboxId, order, 0));
  return command;
};

/** Runs it to its end. Aborting kills it. */
export const runCommand = async (session: Session, sandboxId: SandboxId, order: CommandOrder): Promise<ExecResult> => {
  const command = new Command(session, sandboxId, execIdFor(sandboxId, order.key), order);
  return killedOnAbort(command, order, async () => {
    const first = await sendExec(session, sandboxId, order, order.feed ? 0 : longPollMs(0));
    const ended = untilEnded(session, sandboxId, command.execId, first, order.signal);
    return collect(command, await (order.feed ? whileFeeding(session, command, order.feed, ended, order.signal) : ended));
  });
};

const killedOnAbort = async <T>(command: Command, order: CommandOrder, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.code !== 'CANCELLED' || !order.signal?.aborted) throw thrown;
    const details = { sandboxId: command.sandboxId, execId: command.execId, key: order.key };
    const killed = await killWithin(command);
    throw DsecError.of('CANCELLED', `command ${command.execId} was aborted by its caller${killed ? ' and killed' : '; whether it was killed is unknown'}`, {
      cause: thrown,
      details,
    });
  }
};

const sendExec = (session: Session, sandboxId: SandboxId, order: CommandOrder, waitMs: number): Promise<Answer> =>
  session.ops.call(sandboxId, 'exec', order.wire, { waitMs, signal: order.signal, ...(order.body ? { body: order.body } : {}) });

const untilEnded = async (
  session: Session,
  sandboxId: SandboxId,
  execId: ExecId,
  first: Answer | undefined,
  signal: AbortSignal | undefined,
): Promise<Answer> => {
  let answer = first;
  for (let n = 1; answer?.data.exec.state !== 'ended'; n += 1)
    answer = await session.ops.call(sandboxId, 'wait', { execId }, { waitMs: longPollMs(n), signal });
  return answer;
};

/** The answer carries the beginning of both streams; only what is longer is read from the log. */
const collect = async (command: Command, { data, body }: Answer): Promise<ExecResult> => {
  const { stdoutBytes, stderrBytes } = data.inline;
  const stdout = body.subarray(0, stdoutBytes);
  const stderr = body.subarray(stdoutBytes, stdoutBytes + stderrBytes);
  return new ExecResult(data.exec, await rest(command.stdout, stdout, data.exec.stdout), await rest(command.stderr, stderr, data.exec.stderr));
};

/** Up to `storedBytes`, which was the log's end when the command ended: a child that it left behind may write on. */
const rest = async (reader: OutputReader, inline: Uint8Array, { discardedBytes, storedBytes }: StreamSummary): Promise<Uint8Array> => {
  const kept = storedBytes - discardedBytes;
  if (inline.byteLength >= kept) return inline.subarray(0, kept);
  const chunks = [inline];
  let length = inline.byteLength;
  for await (const chunk of reader.with({ offset: discardedBytes + length, until: 'now', credit: false })) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length >= kept) break;
  }
  return Buffer.concat(chunks).subarray(0, kept);
};

/** Feeds stdin until the command ends. A program that leaves without reading all of its input has not failed. */
const whileFeeding = async <T>(session: Session, command: Command, bytes: Uint8Array, ended: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  const over = new AbortController();
  const { sandboxId, execId } = command;
  const stdin = new StdinWriter({
    ops: session.ops,
    clock: session.clock,
    sandboxId,
    execId,
    signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
  });
  const feeding = stdin.write(bytes).then(() => stdin.close());
  const failed = new Promise<never>((_, reject) => feeding.catch((thrown: unknown) => (isClosedStdin(thrown) ? undefined : reject(thrown))));
  try {
    return await Promise.race([ended, failed]);
  } finally {
    over.abort();
  }
};
const isClosedStdin = (thrown: unknown): boolean => thrown instanceof DsecError && thrown.code === 'STDIN_CLOSED';

/** For who is about to leave: whether the command is certainly dead, known after a moment in any case. */
export const killWithin = (command: Command, giveUpAfterMs: number = SDK_LIMITS.attemptTimeoutMs): Promise<boolean> =>
  command.kill({ giveUpAfterMs, abandon: true }).then(
    () => true,
    () => false,
  );
