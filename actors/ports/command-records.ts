/**
 * The record of commands that is kept off the node (stream EXEC): what a sandbox's Edge writes, and what the Edge of the sandbox
 * that takes its place reads. @paper §6.2
 */
import type { ExecId, ProjectName, SandboxId } from '#bus/ids.ts';
import type { CommandEnded, CommandRecord } from '#bus/op/command-record.ts';
import type { TimestampMs } from '#bus/units.ts';

/** What one sandbox's record says; read once, results are fetched one by one. */
export interface RecordedCommands {
  /** When the command ended, if its end is recorded. */
  endedAt(execId: ExecId): TimestampMs | undefined;
  /** Null: its end is not recorded, or no longer. */
  ended(execId: ExecId): Promise<CommandEnded | null>;
}

export interface CommandRecords {
  /** Resolves when it is durable. Repeatable: the same fact again is the same message. BUS_UNAVAILABLE when that took too long. */
  append(project: ProjectName, record: CommandRecord): Promise<void>;
  of(project: ProjectName, sandboxId: SandboxId): Promise<RecordedCommands>;
}
