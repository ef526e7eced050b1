/** One command in memory: what is known of it, and who waits for more. */
import { DsecError } from '#bus/errors.ts';
import type { ExecId } from '#bus/ids.ts';
import type { ExecView, OutputStream } from '#bus/op/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Exit, Progress, StreamCounts } from '../aether/wire.ts';
import type { ExecFiles } from './files.ts';
import type { Accepted, JournalEntry } from './journal.ts';
import { CHRONUS_LIMITS } from './limits.ts';
import { countsOf, endingOf, endingWithoutRecord, viewOf } from './result.ts';
import type { Ending, Unrecorded } from './result.ts';

/** What a waiter waits for: that it runs, anything new, or the end. */
export type Until = 'start' | 'change' | 'end';
type Waiter = { readonly until: Until; readonly wake: (error?: Error) => void };

const NOTHING: StreamCounts = { totalBytes: 0, storedBytes: 0, discardedBytes: 0, dropped: null };
/** Of a log whose end nobody recorded. */
const asFarAsStored = (bytes: number): StreamCounts => ({ ...NOTHING, totalBytes: bytes, storedBytes: bytes });

/** Counts only grow. An answer may be looked at after what was told unasked behind it. */
const later = (known: StreamCounts, told: StreamCounts): StreamCounts => ({
  totalBytes: Math.max(known.totalBytes, told.totalBytes),
  storedBytes: Math.max(known.storedBytes, told.storedBytes),
  discardedBytes: Math.max(known.discardedBytes, told.discardedBytes),
  dropped: told.dropped ?? known.dropped,
});

export class Command {
  readonly accepted: Accepted;
  /** What is known comes from Aether itself since this Chronus is connected, not from an older file. */
  fresh: boolean;
  /** The one start under way; callers with the same key share it. */
  starting: Promise<void> | undefined;
  /** Order of stdin messages: each waits for the one before. */
  stdinTail: Promise<unknown> = Promise.resolve();
  readonly #waiters = new Set<Waiter>();
  #counts: Record<OutputStream, StreamCounts> = { stdout: NOTHING, stderr: NOTHING };
  #started: boolean;
  #startedAt: TimestampMs;
  #ending: Ending | undefined;

  constructor(accepted: Accepted, options: { readonly started: boolean; readonly fresh: boolean }) {
    this.accepted = accepted;
    this.fresh = options.fresh;
    this.#started = options.started;
    this.#startedAt = accepted.at;
    if (accepted.replayed) this.#takeOver(accepted.replayed);
  }

  /** An ended command, read back. */
  static ended(entry: JournalEntry, files: ExecFiles): Command {
    const command = new Command(entry.accepted, { started: true, fresh: false });
    if (command.ended) return command;
    const exit = files.exitOf(entry.accepted.execId);
    if (exit) command.end(exit);
    else command.endWithoutRecord(entry.death?.reason ?? 'infra', entry.death?.at ?? entry.accepted.at, files);
    return command;
  }

  get execId(): ExecId {
    return this.accepted.execId;
  }

  /** Aether has it, or had it. */
  get started(): boolean {
    return this.#started;
  }

  get running(): boolean {
    return this.#started && this.#ending === undefined;
  }

  get ended(): boolean {
    return this.#ending !== undefined;
  }

  /** Somebody waits for it or reads it: it is in the foreground. */
  get attended(): boolean {
    return this.#waiters.size > 0;
  }

  /** Nothing will be written to its logs any more. */
  get complete(): boolean {
    return this.#ending !== undefined && !this.#ending.pipesOpen;
  }

  get view(): ExecView {
    const { terminal, replayed } = this.accepted;
    return viewOf({ execId: this.execId, startedAt: this.#startedAt, terminal, replayed: replayed !== undefined, ...this.#counts }, this.#ending);
  }

  /** Output in its logs. */
  get keptBytes(): number {
    const { stdout, stderr } = this.#counts;
    return stdout.storedBytes - stdout.discardedBytes + stderr.storedBytes - stderr.discardedBytes;
  }

  counts(stream: OutputStream): StreamCounts {
    return this.#counts[stream];
  }

  markStarted(startedAtMs: number): void {
    this.#started = true;
    this.#startedAt = startedAtMs as TimestampMs;
    this.#wake('start');
  }

  progress({ stdout, stderr, startedAtMs }: Progress): void {
    this.#counts = { stdout: later(this.#counts.stdout, stdout), stderr: later(this.#counts.stderr, stderr) };
    this.markStarted(startedAtMs);
    this.#wake('change');
  }

  /** Comes twice when a background child closes its pipes after the end. */
  end(exit: Exit): void {
    this.progress(exit);
    this.#ending = endingOf(exit);
    this.#wake('end');
  }

  /** Whatever held its pipes is gone with the sandbox. */
  sever(): void {
    if (!this.#ending?.pipesOpen) return;
    this.#ending = { ...this.#ending, pipesOpen: false };
    this.#wake('change');
  }

  endWithoutRecord(reason: Unrecorded, at: TimestampMs, files: ExecFiles): void {
    const { stdout, stderr } = files.storedBytes(this.execId);
    this.#counts = { stdout: asFarAsStored(stdout), stderr: asFarAsStored(stderr) };
    this.#ending = endingWithoutRecord(reason, at);
    this.#wake('end');
  }

  /** Resolves at the next event of that kind, after `ms`, or when `other` settles, whichever comes first. */
  wait(until: Until, ms: number, other?: Promise<unknown>): Promise<void> {
    if (this.#waiters.size >= CHRONUS_LIMITS.waitersPerCommand) {
      throw DsecError.of(
        'OVERLOADED',
        `${CHRONUS_LIMITS.waitersPerCommand} callers already wait for command ${this.execId}; try again when some have their answer`,
      );
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        until,
        wake: (error) => {
          clearTimeout(timer);
          this.#waiters.delete(waiter);
          if (error) reject(error);
          else resolve();
        },
      };
      const timer = setTimeout(() => waiter.wake(), ms);
      this.#waiters.add(waiter);
      other?.then(
        () => waiter.wake(),
        () => waiter.wake(),
      );
    });
  }

  /** Sends every waiter away with an error. */
  dismiss(error: Error): void {
    for (const waiter of this.#waiters) waiter.wake(error);
  }

  /** How it ended where it ran. */
  #takeOver(exec: ExecView): void {
    this.#started = true;
    this.#startedAt = exec.startedAt;
    this.#counts = { stdout: countsOf(exec.stdout), stderr: countsOf(exec.stderr) };
    this.#ending = exec;
  }

  #wake(event: Until): void {
    for (const waiter of this.#waiters) if (event === 'end' || waiter.until === event || waiter.until === 'start') waiter.wake();
  }
}
