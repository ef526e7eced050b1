/**
 * What a worker and the platform say to each other: one JSON object per line, the worker's on its stdout, the platform's on its
 * stdin, one request at a time. Both streams are logs addressed by byte, so an answer that is written twice is there once.
 * @paper §6.2
 */
import { z } from 'zod';
import { Fault, WireError } from '../errors.ts';
import { RolloutId } from '../ids.ts';
import { ROLLOUT_LIMITS, SPEC_LIMITS } from '../limits.ts';
import { Env, GuestPath, InitUser } from '../sandbox/spec.ts';
import { SandboxRole } from './schema.ts';

/** A step in one of the agent's sandboxes; exactly one of argv and shell. */
export const StepRequest = z
  .strictObject({
    type: z.literal('exec'),
    sandbox: SandboxRole,
    argv: z.array(z.string()).min(1).max(SPEC_LIMITS.argumentCount).optional(),
    shell: z.string().optional(),
    stdin: z.string().optional(),
    env: Env.optional(),
    cwd: GuestPath.optional(),
    user: InitUser.optional(),
    timeoutMs: z.number().int().min(1).optional(),
  })
  .refine(({ argv, shell }) => (argv === undefined) !== (shell === undefined), 'name exactly one of argv and shell');
export type StepRequest = z.infer<typeof StepRequest>;

export const TurnRequest = z.strictObject({ type: z.literal('turn'), request: z.unknown() });
export const SnapshotRequest = z.strictObject({ type: z.literal('snapshot'), sandbox: SandboxRole });
export const EpisodeResult = z.strictObject({ type: z.literal('result'), reward: z.number().nullable().default(null), result: z.unknown() });
export const WorkerLine = z.union([StepRequest, TurnRequest, SnapshotRequest, EpisodeResult]);
export type WorkerLine = z.infer<typeof WorkerLine>;

export const PlatformLine = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), rollout: RolloutId, attempt: z.number().int().nonnegative(), task: z.unknown(), sandboxes: z.array(SandboxRole) }),
  z.object({ type: z.literal('answer'), turn: z.number().int().nonnegative(), answer: z.unknown() }),
  z.object({
    type: z.literal('done'),
    step: z.number().int().nonnegative(),
    exitCode: z.number().int().nullable(),
    signal: z.string().nullable(),
    reason: z.string().nullable(),
    fault: Fault.nullable(),
    /** UTF-8, at most `ROLLOUT_LIMITS.stepOutputBytes` of each: the beginning and the end, what is between is said to be left out. */
    stdout: z.string(),
    stderr: z.string(),
    stdoutBytes: z.number().int().nonnegative(),
    stderrBytes: z.number().int().nonnegative(),
    error: WireError.nullable(),
    /** The sandbox was lost before this step and made anew from this snapshot, or from its image when null. */
    restored: z.object({ snapshot: z.string().nullable() }).nullable(),
  }),
  z.object({ type: z.literal('snapshotted'), layer: z.string().nullable(), error: WireError.nullable() }),
  /** The line before was not understood. */
  z.object({ type: z.literal('refused'), error: WireError }),
]);
export type PlatformLine = z.infer<typeof PlatformLine>;

/** Longest line of a worker: a turn with its frame. */
export const WORKER_LINE_BYTES = ROLLOUT_LIMITS.turnBytes + 4_096;
