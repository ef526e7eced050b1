/**
 * What the stream EXEC keeps of a command, off the node: that it was started, and how it ended with the beginning of its output.
 * A command whose end is recorded has been answered, or may have been; it can be answered again when its node is gone. @paper §6.2
 */
import { z } from 'zod';
import { ClientKey, ExecId, SandboxId } from '../ids.ts';
import { TimestampMs } from '../units.ts';
import { type ExecReason, ExecView } from './schema.ts';

const common = { v: z.literal(1), sandboxId: SandboxId, execId: ExecId, key: ClientKey, bodyHash: z.string(), at: TimestampMs };

export const CommandStarted = z.object({ fact: z.literal('started'), ...common });
/** `stdout` and `stderr`: base64 of what was kept, at most `RECORD_LIMITS.outputBytes` of each. */
export const CommandEnded = z.object({ fact: z.literal('ended'), ...common, exec: ExecView, stdout: z.base64(), stderr: z.base64() });
export const CommandRecord = z.discriminatedUnion('fact', [CommandStarted, CommandEnded]);
export type CommandRecord = z.infer<typeof CommandRecord>;
export type CommandEnded = z.infer<typeof CommandEnded>;

/** Ends that are a result. Of a command that went down with its sandbox nobody knows how it would have ended. */
export const RECORDED_REASONS: ReadonlySet<ExecReason | null> = new Set<ExecReason>(['exited', 'signaled', 'oom', 'timeout', 'cancelled']);
