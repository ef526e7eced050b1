/**
 * A shell that stays: scripts run in it one after another and find the directory, variables and functions that the ones before
 * have left. @paper §3.3
 *
 * It is one command of the sandbox underneath, so it survives restarts of the Edge as every command does. What its children print
 * between two scripts belongs to nobody and is dropped.
 */
import { DsecError } from '#bus/errors.ts';
import type { ExecId, SandboxId } from '#bus/ids.ts';
import type { OutputStream } from '#bus/op/schema.ts';
import type { Command } from '../exec/command.ts';
import type { ExecEnd } from '../exec/exec-result.ts';
import { SDK_LIMITS } from '../limits.ts';
import { onAbort, randomKey, type Clock } from '../transport/clock.ts';
import { MarkScanner } from './mark-scanner.ts';
import { BREAK_SIGNAL, endMarks, lineOf, PROLOGUE } from './script.ts';
import { type ShellEnding, ShellResult } from './shell-result.ts';

export type ShellRunOptions = {
  /** Milliseconds after which what the script started is killed and the script broken off; the shell goes on when that is possible. */
  readonly timeoutMs?: number | undefined;
  /** Breaks the script off in the same way. */
  readonly signal?: AbortSignal | undefined;
  /** Bytes kept of each stream; more is counted and dropped. */
  readonly outputLimitBytes?: number | undefined;
};

type Run = { readonly stdout: MarkScanner; readonly stderr: MarkScanner; readonly look: () => void };
type BrokenOff = 'timeout' | 'cancelled';

export class Shell {
  readonly sandboxId: SandboxId;
  readonly execId: ExecId;
  readonly #command: Command;
  readonly #clock: Clock;
  /** Scripts run in the order of the calls. */
  #tail: Promise<unknown>;
  #run: Run | undefined;
  #end: ExecEnd | undefined;
  readonly #ended: Promise<void>;

  constructor(command: Command, clock: Clock) {
    this.#command = command;
    this.#clock = clock;
    this.sandboxId = command.sandboxId;
    this.execId = command.execId;
    this.#tail = command.stdin.write(PROLOGUE);
    this.#tail.catch(() => {}); // met again by the first script
    this.#ended = this.#follow();
    this.#ended.catch(() => {}); // told to whoever runs a script
  }

  /** How the shell itself ended; undefined while it runs. */
  get end(): ExecEnd | undefined {
    return this.#end;
  }

  /** Runs a script and waits for its end. INVALID_STATE when the shell has ended. */
  run(script: string, options: ShellRunOptions = {}): Promise<ShellResult> {
    const mark = randomKey();
    const done = this.#tail.then(() => this.#runNow(lineOf(script, mark), mark, options));
    this.#tail = done.catch(() => {}); // reported to the caller of this script
    return done;
  }

  /** Ends the shell and everything that was started in it. Repeatable. */
  async close(): Promise<void> {
    if (this.#end) return;
    await this.#command.kill();
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || !['SANDBOX_NOT_FOUND', 'SANDBOX_ENDED'].includes(thrown.code)) throw thrown;
    }
  }

  async #runNow(line: string, mark: string, options: ShellRunOptions): Promise<ShellResult> {
    if (this.#end) throw DsecError.of('INVALID_STATE', `shell ${this.execId} has ended (${describe(this.#end)}); open a new one`);
    const marks = endMarks(mark);
    const limitBytes = options.outputLimitBytes ?? SDK_LIMITS.shellOutputBytes;
    const { promise: marked, resolve: look } = signal();
    const run: Run = { stdout: new MarkScanner(marks.stdout, limitBytes), stderr: new MarkScanner(marks.stderr, limitBytes), look };
    this.#run = run;
    try {
      const written = this.#command.stdin.write(line);
      written.catch(() => {}); // a shell that has ended takes no more, and its end says why
      const over = Promise.race([marked, this.#ended]);
      const brokenOff = await this.#breakOffWhenDue(over, options);
      await over;
      return this.#resultOf(run, brokenOff);
    } finally {
      this.#run = undefined;
    }
  }

  #resultOf(run: Run, brokenOff: BrokenOff | undefined): ShellResult {
    const end = run.stdout.value === undefined ? this.#end : undefined;
    for (const scanner of [run.stdout, run.stderr]) scanner.finish();
    return new ShellResult(endingOf(run.stdout.value, end, brokenOff), run.stdout, run.stderr);
  }

  /** Resolves when the script is over, or told to end, with why. */
  async #breakOffWhenDue(over: Promise<void>, { timeoutMs, signal: abort }: ShellRunOptions): Promise<BrokenOff | undefined> {
    const { promise: due, resolve } = signal<BrokenOff>();
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => resolve('timeout'), timeoutMs);
    const off = onAbort(abort, () => resolve('cancelled'));
    if (abort?.aborted) resolve('cancelled');
    try {
      const why = await Promise.race([due, over.then(() => undefined)]);
      if (why) await this.#breakOff(over);
      return why;
    } finally {
      clearTimeout(timer);
      off();
    }
  }

  /**
   * Kills what the script has started, and tells the shell to leave the script. Each try leaves one function more; a shell that
   * does not come back at all is ended.
   */
  async #breakOff(over: Promise<void>): Promise<void> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    over.then(end, end); // a failure is for whoever awaits the script, not for the process as a whole
    let failure: unknown;
    for (let tries = 0; tries < SDK_LIMITS.shellBreakTries && !isOver; tries += 1) {
      failure = await this.#tryToBreakOff();
      await Promise.race([over, this.#clock.sleep(SDK_LIMITS.shellBreakPauseMs)]);
    }
    if (!isOver && failure) throw failure;
    if (!isOver) await this.#command.kill();
  }

  /** Answers with why it failed: a shell that is ending with its sandbox cannot be told anything, and its end says why. */
  async #tryToBreakOff(): Promise<unknown> {
    try {
      await this.#command.signal(BREAK_SIGNAL);
      await this.#command.killSinceInput();
      return undefined;
    } catch (thrown) {
      return thrown;
    }
  }

  /** Reads both streams for as long as the shell lives. */
  async #follow(): Promise<void> {
    await Promise.all([this.#pump('stdout'), this.#pump('stderr')]);
    this.#end = await this.#command.wait();
  }

  async #pump(stream: OutputStream): Promise<void> {
    for await (const chunk of this.#command[stream].with({ lost: 'skip' })) {
      const run = this.#run;
      if (!run || run[stream].value !== undefined) continue;
      run[stream].take(chunk);
      if (run.stdout.value !== undefined && run.stderr.value !== undefined) run.look();
    }
  }
}

const endingOf = (value: string | undefined, end: ExecEnd | undefined, brokenOff: BrokenOff | undefined): ShellEnding => {
  if (brokenOff) return { exitCode: null, reason: brokenOff, fault: 'agent', retry: 'never', shellEnded: end !== undefined };
  if (end) return { exitCode: end.exitCode, reason: end.reason, fault: end.fault, retry: end.retry, shellEnded: true };
  const exitCode = Number(value);
  return { exitCode, reason: 'exited', fault: exitCode === 0 ? null : 'agent', retry: exitCode === 0 ? null : 'never', shellEnded: false };
};

const describe = (end: ExecEnd): string => (end.reason === 'exited' ? `exit code ${end.exitCode}` : end.reason);

const signal = <T = void>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } => {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
};
