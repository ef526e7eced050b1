/**
 * Fast-forward: a sandbox that was recovered from a lost one answers commands from that one's record instead of running them.
 * @paper §6.2
 *
 * Decides, per key, whether it is answered so. What had ended before the snapshot was asked for is always: its effects are in the
 * snapshot. What ended later is, until the first command comes that is not recorded; from then on everything runs, because what
 * the record says was true of files that are not there. Both are written down before they are acted on, so that another Edge
 * goes on in the same way. An answered command is known like one that ran here: same key, same answer, other body KEY_CONFLICT.
 */
import { type ClientKey, type ExecId, execIdFor, type ProjectName, type SandboxId } from '#bus/ids.ts';
import type { CommandEnded } from '#bus/op/command-record.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CommandRecords, RecordedCommands } from '#actors/ports/command-records.ts';
import type { ExecFiles } from './files.ts';
import type { Accepted } from './journal.ts';
import type { CommandTable } from './table.ts';

export type ReplayOptions = {
  readonly project: ProjectName;
  readonly origin: NonNullable<SandboxSpec['recoveredFrom']>;
  readonly records: Pick<CommandRecords, 'of'>;
  readonly files: ExecFiles;
  readonly table: CommandTable;
};

export class Replay {
  readonly #o: ReplayOptions;
  #recorded: Promise<RecordedCommands> | undefined;
  /** One decision after the other: the first command that is not recorded ends the replay for all that come behind it. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(options: ReplayOptions) {
    this.#o = options;
  }

  /** Makes the command known as ended when the record answers it; otherwise it may run. */
  decide(sandboxId: SandboxId, key: ClientKey): Promise<void> {
    const decided = this.#tail.then(() => this.#decide(execIdFor(sandboxId, key), execIdFor(this.#o.origin.sandbox, key)));
    this.#tail = decided.catch(() => undefined);
    return decided;
  }

  async #decide(execId: ExecId, originalId: ExecId): Promise<void> {
    const { table, files } = this.#o;
    if (table.get(execId)) return;
    const recorded = await this.#load();
    const endedAt = recorded.endedAt(originalId);
    const inSnapshot = endedAt !== undefined && endedAt <= (this.#o.origin.snapshot?.begunAt ?? 0);
    if (files.isReplayOver && !inSnapshot) return;
    const record = await recorded.ended(originalId);
    if (!record) return files.endReplay();
    files.writeReplayed(execId, { stdout: Buffer.from(record.stdout, 'base64'), stderr: Buffer.from(record.stderr, 'base64') });
    table.acceptReplayed(acceptedOf(record, execId));
  }

  /** The lost sandbox does nothing any more, so its record is read once. */
  #load(): Promise<RecordedCommands> {
    this.#recorded ??= this.#o.records.of(this.#o.project, this.#o.origin.sandbox).catch((thrown: unknown) => {
      this.#recorded = undefined;
      throw thrown;
    });
    return this.#recorded;
  }
}

const acceptedOf = ({ key, bodyHash, at, exec }: CommandEnded, execId: ExecId): Accepted => ({
  v: 1,
  fact: 'accepted',
  execId,
  key,
  bodyHash,
  at,
  stdin: 'none',
  timeoutMs: 0,
  outputLimitBytes: 0,
  onFull: 'truncate',
  terminal: exec.terminal,
  replayed: { ...exec, execId, replayed: true },
});
