/**
 * Chronus: the commands of one sandbox, as the Edge serves them. @paper §3.3
 *
 * Decides when a command is started (once per client key, whatever dies in between), what its callers are told, and who
 * waits for what. The process itself is Aether's; bytes lie in files that Aether writes and this reads. Holds no truth: a
 * new Chronus over the same directory and socket goes on where this one stopped.
 *
 * INV-EXEC-ONCE: the journal has a command before Aether is asked for it, and Aether refuses an exec id that it knows. So
 * whichever process dies, the command is started at most once, and a repeated call finds it.
 */
import { DsecError } from '#bus/errors.ts';
import { type ExecId, execIdFor, type ProjectName, type SandboxId } from '#bus/ids.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { ExecOpName, OpParsed, OpResponse } from '#bus/op/schema.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Exit, Progress } from '../aether/wire.ts';
import { Abandoned } from './abandoned.ts';
import { Channel, closedError } from './channel.ts';
import type { Command } from './command.ts';
import type { Death } from './journal.ts';
import { Credits } from './credits.ts';
import { ExecFiles } from './files.ts';
import { CHRONUS_LIMITS } from './limits.ts';
import { acceptedOf, checkExec, type ExecDefaults, execHash } from './request.ts';
import { beginningOf, sliceOf } from './outputs.ts';
import { summaryOf } from './result.ts';
import { Recorder } from './recorder.ts';
import { Replay } from './replay.ts';
import { Retention } from './retention.ts';
import { Starter } from './starter.ts';
import { feedStdin, sendSignal } from './control.ts';
import { CommandTable } from './table.ts';

export type ChronusOptions = {
  readonly sandboxId: SandboxId;
  /** Aether's directory of logs and records, and home of the journal. */
  readonly execDir: string;
  readonly socketPath: string;
  readonly defaults: ExecDefaults;
  readonly clock: Clock;
  /** A command was started, fed, signalled, printed something or ended. At most once a second for output. */
  readonly onActivity: () => void;
  /** Nobody listens at the socket any more. Once. */
  readonly onLost: () => void;
  /** How long output of ended commands is kept; the contract's time when absent. */
  readonly outputRetentionMs?: number | undefined;
  /** Whether the sandbox's end, once it has come, was the end of its life. */
  readonly isExpired?: () => boolean;
  /** Commands are recorded off the node, or answered from the record of the sandbox whose place this one takes, or both. */
  readonly record?: RecordOptions | undefined;
};
export type RecordOptions = {
  readonly project: ProjectName;
  readonly records: CommandRecords;
  readonly isRecorded: boolean;
  readonly origin: SandboxSpec['recoveredFrom'];
};

/** `data` is the answer's meta, `body` the raw bytes behind it. */
export type OpResult<O extends ExecOpName> = { readonly data: OpResponse<O>; readonly body: Uint8Array[] };
/** `exec` and `wait` answer alike. */
type Outcome = { readonly data: OpResponse<'exec'> & OpResponse<'wait'>; readonly body: Uint8Array[] };
type Handlers = { readonly [O in ExecOpName]: (request: OpParsed<O>, body: Uint8Array) => Promise<OpResult<O>> };

export class Chronus {
  readonly #o: ChronusOptions;
  readonly #files: ExecFiles;
  readonly #table: CommandTable;
  readonly #channel: Channel;
  readonly #starter: Starter;
  readonly #credits: Credits;
  readonly #retention: Retention;
  readonly #abandoned = new Abandoned();
  readonly #recorder: Recorder | undefined;
  readonly #replay: Replay | undefined;
  #closed = false;
  #lastOutputActivityMs = 0;

  constructor(options: ChronusOptions) {
    this.#o = options;
    this.#files = new ExecFiles(options.execDir);
    this.#table = new CommandTable(options.execDir, this.#files);
    this.#channel = new Channel(options.socketPath, {
      progress: (progress) => this.#onProgress(progress),
      exit: (exit) => this.#onExit(exit),
      startFailed: (execId) => this.#starter.onFailedElsewhere(execId),
      reconnected: () => this.#onReconnected(),
      gone: () => this.#onGone(),
    });
    this.#credits = new Credits(this.#channel, options.clock);
    this.#retention = new Retention({ files: this.#files, table: this.#table, clock: options.clock, retentionMs: options.outputRetentionMs });
    const { record, sandboxId } = options;
    const [files, table] = [this.#files, this.#table];
    this.#recorder = record?.isRecorded ? new Recorder({ ...record, sandboxId, files }) : undefined;
    this.#replay = record?.origin ? new Replay({ ...record, origin: record.origin, files, table }) : undefined;
    this.#starter = new Starter({ table: this.#table, channel: this.#channel, files: this.#files, onExit: (exit) => this.#onExit(exit) });
  }

  /** Connects, and takes up the commands that an earlier Edge left. False when the agent, and so the sandbox, is gone. */
  async attach(): Promise<boolean> {
    if (!(await this.#channel.client())) return false;
    this.#table.load();
    this.#refreshAll();
    this.#retention.start();
    return true;
  }

  get runningCount(): number {
    return this.#table.runningCount;
  }

  /** Whether somebody waits for a running command, or reads it: work in the foreground. What runs unattended is not. */
  get isAttended(): boolean {
    return this.#table.isAttended;
  }

  handle<O extends ExecOpName>(op: O, request: OpParsed<O>, body: Uint8Array): Promise<OpResult<O>> {
    return this.#handlers[op](request, body);
  }

  /** The sandbox ends by itself so many seconds from now. Nothing happens when it is gone. */
  async setLife(seconds: number): Promise<void> {
    await (await this.#channel.client())?.setLife(seconds);
  }

  /** While it stands, commands do not use up their time. Nothing happens when the sandbox is gone. */
  async stopClock(stopped: boolean): Promise<void> {
    await (await this.#channel.client())?.stopClock(stopped);
  }

  /** Whether this call is answered by what is recorded already: its key names a command that has ended. */
  isRecorded(op: ExecOpName, request: OpParsed<ExecOpName>): boolean {
    return op === 'exec' && this.#table.get(execIdFor(this.#o.sandboxId, (request as OpParsed<'exec'>).key))?.ended === true;
  }

  /** The sandbox is being ended; `end` follows. */
  ending(): void {
    this.#channel.ending();
  }

  /** The sandbox is gone for certain: whoever waits is told how its commands ended. */
  end(): void {
    this.#channel.end();
  }

  /** Sends everybody away; commands go on without this Chronus. */
  close(): void {
    this.#closed = true;
    this.#channel.close();
    this.#credits.close();
    this.#retention.close();
    for (const command of this.#table.live) command.dismiss(closedError());
  }

  readonly #handlers: Handlers = {
    exec: async (request, body) => {
      checkExec(request, body);
      const deadlineMs = this.#o.clock.monotonicMs() + request.waitMs;
      await this.#replay?.decide(this.#o.sandboxId, request.key);
      const command = await this.#accept(request, body);
      if (!command.started && !command.ended) {
        this.#starter.ensureStarted(command, request, body, this.#o.defaults);
        if (request.waitMs < CHRONUS_LIMITS.startPatienceMs) await command.wait('start', CHRONUS_LIMITS.startPatienceMs);
      }
      return this.#outcome(command, deadlineMs);
    },
    wait: async (request) => this.#outcome(await this.#known(request.execId), this.#o.clock.monotonicMs() + request.waitMs),
    read: async (request) => this.#read(await this.#known(request.execId), request),
    list: async () => {
      this.#table.load();
      await Promise.all([...this.#table.live].map((command) => this.#freshen(command)));
      return { data: { execs: this.#table.list() }, body: [] };
    },
    signal: async (request) => {
      if (request.abandon) this.#abandoned.add(request.execId, this.#o.clock.monotonicMs());
      const command = await this.#known(request.execId);
      await command.starting; // or it would reach nothing yet
      this.#o.onActivity();
      return { data: { delivered: await sendSignal(this.#channel, command, request) }, body: [] };
    },
    credit: async (request) => {
      const command = await this.#known(request.execId);
      const { stream, reader, consumed, release } = request;
      this.#o.onActivity();
      await (release ? this.#credits.release(command, stream, reader) : this.#credits.take(command, stream, reader, consumed));
      const windowBytes = command.accepted.outputLimitBytes;
      return { data: { leaseMs: EXEC_LIMITS.creditMs, windowBytes, summary: summaryOf(command.counts(stream)), ended: command.ended }, body: [] };
    },
    resize: async ({ execId, terminal }) => {
      const command = await this.#known(execId);
      this.#o.onActivity();
      return { data: { applied: (await (await this.#channel.client())?.resize(command.execId, terminal)) ?? false }, body: [] };
    },
    stdin: async (request, body) => {
      const command = await this.#known(request.execId);
      this.#o.onActivity();
      return { data: { nextOffset: await feedStdin(this.#channel, command, request, body) }, body: [] };
    },
  };

  /** The command that the request's key names: journalled now, or known. */
  async #accept(request: OpParsed<'exec'>, body: Uint8Array): Promise<Command> {
    const execId = execIdFor(this.#o.sandboxId, request.key);
    const bodyHash = execHash(request, body);
    const channelOpen = (await this.#channel.client()) !== undefined;
    // from here to the journal's line without a pause: two calls with one key must not both find nothing
    const known = this.#table.get(execId);
    if (known && known.accepted.bodyHash !== bodyHash) {
      throw DsecError.of('KEY_CONFLICT', `key '${request.key}' already names another command of this sandbox; choose a new key`, { details: { execId } });
    }
    if (!known && this.#abandoned.has(execId, this.#o.clock.monotonicMs()))
      throw DsecError.of('CANCELLED', `command ${execId} was killed by its caller before it was started; choose a new key`, { outcome: 'not_applied' });
    if (!known && !channelOpen) throw DsecError.of('SANDBOX_ENDED', 'the sandbox has ended; create a new one');
    this.#o.onActivity();
    if (!known) {
      const command = this.#table.accept(acceptedOf(request, execId, bodyHash, this.#o.clock.now(), this.#o.defaults));
      this.#credits.watch(command);
      this.#recorder?.started(command);
      return command;
    }
    await this.#freshen(known);
    return known;
  }

  async #known(execId: ExecId): Promise<Command> {
    const command = this.#table.get(execId);
    if (command) await this.#freshen(command);
    if (!command || (!command.started && !command.starting)) {
      throw DsecError.of('EXEC_NOT_FOUND', `no command ${execId} was started in this sandbox; start it with exec and the same key`);
    }
    return command;
  }

  /** What came from files may be old; asks Aether, once. */
  async #freshen(command: Command): Promise<void> {
    if (command.fresh || command.complete) return;
    if (await this.#channel.client()) await this.#starter.refresh(command);
    else if (command.started) this.#table.bury(command, this.#death());
  }

  #refreshAll(): void {
    for (const command of this.#table.live) {
      this.#credits.watch(command);
      command.fresh = false;
      this.#freshen(command).catch(() => undefined); // whoever asks for this command tries again and is told
    }
  }

  async #outcome(command: Command, deadlineMs: number): Promise<Outcome> {
    for (let left = deadlineMs - this.#o.clock.monotonicMs(); !command.ended && left > 0; left = deadlineMs - this.#o.clock.monotonicMs()) {
      await this.#wait(command, 'end', left);
    }
    await this.#recorder?.ended(command);
    const stdout = beginningOf(this.#files, command, 'stdout');
    const stderr = beginningOf(this.#files, command, 'stderr');
    return { data: { exec: command.view, inline: { stdoutBytes: stdout.byteLength, stderrBytes: stderr.byteLength } }, body: [stdout, stderr] };
  }

  async #read(command: Command, { stream, offset, maxBytes, waitMs }: OpParsed<'read'>): Promise<OpResult<'read'>> {
    const deadlineMs = this.#o.clock.monotonicMs() + waitMs;
    const hasNews = (): boolean => command.counts(stream).storedBytes > offset || command.complete;
    for (let left = waitMs; !hasNews() && left > 0; left = deadlineMs - this.#o.clock.monotonicMs()) await this.#wait(command, 'change', left);
    await this.#recorder?.ended(command); // a slice says whether the command has ended
    return sliceOf(this.#files, command, stream, offset, maxBytes);
  }

  async #wait(command: Command, until: 'change' | 'end', ms: number): Promise<void> {
    if (this.#closed) throw closedError();
    await command.wait(until, ms);
    this.#o.onActivity(); // the foreground ends now, not when the wait began
  }

  #onProgress(progress: Progress): void {
    this.#table.peek(progress.execId)?.progress(progress);
    const nowMs = this.#o.clock.monotonicMs();
    if (nowMs - this.#lastOutputActivityMs < CHRONUS_LIMITS.activityIntervalMs) return;
    this.#lastOutputActivityMs = nowMs;
    this.#o.onActivity();
  }

  #onReconnected(): void {
    this.#refreshAll();
    this.#credits.tellAll();
  }

  #onComplete(command: Command): void {
    this.#credits.forget(command);
    this.#retention.note(command.keptBytes);
  }

  #onExit(exit: Exit): void {
    const command = this.#table.peek(exit.execId);
    if (!command) return;
    command.fresh = true;
    command.end(exit);
    this.#table.settle(command);
    if (command.complete) this.#onComplete(command);
    this.#recorder?.ended(command).catch(() => undefined); // whoever is to be told tries again
    this.#o.onActivity();
  }

  #death(): Death {
    return { at: this.#o.clock.now(), reason: this.#o.isExpired?.() ? 'expired' : 'sandbox_died' };
  }

  #onGone(): void {
    this.#table.load();
    for (const command of [...this.#table.live]) if (command.started) this.#table.bury(command, this.#death());
    this.#o.onLost();
  }
}
