/**
 * Writes commands down off the node, for sandboxes that asked for it: that they were started, and how they ended. @paper §6.2
 *
 * INV-RECORDED: nobody is told how a command ended before that is recorded, so what a caller has acted on can be answered again
 * when the node is gone. While the bus takes no records, answers wait, and then say BUS_UNAVAILABLE; the command itself goes on.
 */
import type { ProjectName, SandboxId } from '#bus/ids.ts';
import { RECORD_LIMITS } from '#bus/limits.ts';
import { RECORDED_REASONS } from '#bus/op/command-record.ts';
import type { ExecView, OutputStream, StreamSummary } from '#bus/op/schema.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { Command } from './command.ts';
import type { ExecFiles } from './files.ts';

export type RecorderOptions = {
  readonly project: ProjectName;
  readonly sandboxId: SandboxId;
  readonly records: Pick<CommandRecords, 'append'>;
  readonly files: ExecFiles;
};

export class Recorder {
  readonly #o: RecorderOptions;
  /** Ends that are recorded or being recorded; what failed is tried again by whoever asks next. */
  readonly #ends = new WeakMap<Command, Promise<void>>();

  constructor(options: RecorderOptions) {
    this.#o = options;
  }

  /** Nobody waits for this one: it tells a reader of the record that a command without an end had begun. */
  started(command: Command): void {
    this.#append({ fact: 'started', ...this.#common(command) }).catch(() => undefined);
  }

  /** Resolves when the end of an ended command is durable. */
  ended(command: Command): Promise<void> {
    if (!command.ended || !RECORDED_REASONS.has(command.view.reason)) return Promise.resolve();
    const known = this.#ends.get(command);
    if (known) return known;
    const recording = this.#recordEnd(command);
    this.#ends.set(command, recording);
    recording.catch(() => this.#ends.delete(command));
    return recording;
  }

  #recordEnd(command: Command): Promise<void> {
    const { view } = command;
    const [stdout, stderr] = [this.#beginning(command, 'stdout'), this.#beginning(command, 'stderr')];
    const exec: ExecView = { ...view, pipesOpen: false, stdout: keptOf(view.stdout, stdout), stderr: keptOf(view.stderr, stderr) };
    return this.#append({ fact: 'ended', ...this.#common(command), exec, stdout: stdout.toString('base64'), stderr: stderr.toString('base64') });
  }

  #append(record: Parameters<CommandRecords['append']>[1]): Promise<void> {
    return this.#o.records.append(this.#o.project, record);
  }

  #common({ accepted: { execId, key, bodyHash, at } }: Command) {
    return { v: 1, sandboxId: this.#o.sandboxId, execId, key, bodyHash, at } as const;
  }

  #beginning(command: Command, stream: OutputStream): Buffer {
    const { storedBytes, discardedBytes } = command.counts(stream);
    const wanted = discardedBytes > 0 ? 0 : Math.min(storedBytes, RECORD_LIMITS.outputBytes);
    return Buffer.from(this.#o.files.read(command.execId, stream, 0, wanted) ?? new Uint8Array());
  }
}

/** What a reader of the record is told of a stream: all that was written is counted, what is not kept here was dropped. */
const keptOf = ({ totalBytes, dropped }: StreamSummary, kept: Uint8Array): StreamSummary => {
  const truncated = totalBytes > kept.byteLength;
  return { totalBytes, storedBytes: kept.byteLength, discardedBytes: 0, truncated, dropped: truncated ? (dropped ?? 'limit') : null };
};
