/**
 * The rollout actor: one agent's episode in a job. @paper §6.2
 *
 * The agent's loop runs in a worker sandbox, its tools in one or more agent sandboxes, both outside the trainer. The worker prints
 * one JSON line per request (a model turn, a tool step, its result) and reads one line per answer; how far it has been served is
 * two byte offsets. So whoever drives a rollout may die at any moment, and the next one goes on from this state.
 */
import { z } from 'zod';
import { ClientKey, ExecId, JobId, ProjectName, RolloutId, SandboxId } from '../ids.ts';
import { WireError } from '../errors.ts';
import { ROLLOUT_LIMITS, SPEC_LIMITS } from '../limits.ts';
import { Env, GuestPath, InitUser, SandboxRequest } from '../sandbox/spec.ts';
import { DurationMs, TimestampMs } from '../units.ts';

/** JSON of the caller's, carried and never looked into. */
const opaque = (what: string, maxBytes: number) =>
  z.unknown().refine((value) => Buffer.byteLength(JSON.stringify(value) ?? 'null') <= maxBytes, `${what} has more than ${maxBytes} bytes of JSON`);

/** How the worker calls one of the agent's sandboxes. */
export const SandboxRole = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'a role is a short lower-case name');
export type SandboxRole = z.infer<typeof SandboxRole>;

export const WorkerProgram = z.strictObject({
  argv: z.array(z.string()).min(1).max(SPEC_LIMITS.argumentCount),
  env: Env.default({}),
  cwd: GuestPath.optional(),
  user: InitUser.optional(),
});

export const RolloutSpec = z.strictObject({
  /** Given to the worker as its first line; says what the episode is about. */
  task: opaque('task', ROLLOUT_LIMITS.taskBytes).default(null),
  worker: z.strictObject({ sandbox: SandboxRequest, program: WorkerProgram }),
  /** The agent's sandboxes by role. */
  sandboxes: z
    .record(SandboxRole, SandboxRequest)
    .refine((s) => Object.keys(s).length <= ROLLOUT_LIMITS.sandboxes, `at most ${ROLLOUT_LIMITS.sandboxes} sandboxes beside the worker`)
    .default({}),
  /** From its start; never beyond its job's deadline. */
  lifeMs: DurationMs.min(SPEC_LIMITS.lifeMsMin)
    .max(SPEC_LIMITS.lifeMsMax)
    .default((4 * 3_600_000) as DurationMs),
  /**
   * When an agent sandbox is lost: `fail` ends the episode as lost, to be masked; `restore` makes it anew from its newest snapshot,
   * or from its image, and tells the worker with its next step.
   */
  onSandboxLost: z.enum(['fail', 'restore']).default('fail'),
  /** Rollouts of one task that are compared with each other; for the trainer's eyes only. */
  group: z.string().max(ROLLOUT_LIMITS.groupLength).default(''),
  /** Sandboxes are left to their lives at the end instead of being stopped. */
  keepSandboxes: z.boolean().default(false),
});
export type RolloutSpec = z.infer<typeof RolloutSpec>;

const index = z.number().int().nonnegative();
const bytes = z.number().int().nonnegative();

/** How far the worker's two streams have been served: what was read of its stdout, what was written to its stdin. */
export const Served = z.object({ stdoutBytes: bytes, stdinBytes: bytes });
export type Served = z.infer<typeof Served>;

/** One tool step as the trajectory tells it; the output itself lies with the command. */
export const StepRecord = z.object({
  /** Number of the step in the episode: 0, 1, 2, … */
  step: index,
  role: SandboxRole,
  sandboxId: SandboxId,
  execId: ExecId.nullable(),
  /** What was asked, cut to `ROLLOUT_LIMITS.stepCommandBytes`. */
  command: z.string().max(ROLLOUT_LIMITS.stepCommandBytes),
  exitCode: z.number().int().nullable(),
  reason: z.string().max(40).nullable(),
  stdoutBytes: bytes,
  stderrBytes: bytes,
  startedAt: TimestampMs,
  durationMs: DurationMs,
  error: WireError.nullable(),
  /** Answered from the record instead of being run. */
  replayed: z.boolean().default(false),
});
export type StepRecord = z.infer<typeof StepRecord>;
const steps = z.array(StepRecord).max(ROLLOUT_LIMITS.stepsPerCommit);

const turnRequest = opaque('a turn', ROLLOUT_LIMITS.turnBytes);
const turnAnswer = opaque('an answer', ROLLOUT_LIMITS.turnBytes);

export const Outcome = z.enum(['finished', 'failed', 'stopped', 'expired']);
export type Outcome = z.infer<typeof Outcome>;

export const StartRollout = z.object({
  type: z.literal('StartRollout'),
  jobId: JobId,
  key: ClientKey,
  bodyHash: z.string(),
  spec: RolloutSpec,
  /** The job's deadline, as the shell knows it. */
  jobDeadlineAt: TimestampMs,
});
/**
 * Answers the turn that is open. `epoch` is the job's lease under which the trainer speaks, `jobEpoch` the newest one that the shell
 * knows: an older trainer's answer is refused. The same answer again is ignored, another one is refused.
 */
export const AnswerTurn = z.object({
  type: z.literal('AnswerTurn'),
  turn: index,
  answer: turnAnswer,
  answerHash: z.string(),
  epoch: z.number().int().nonnegative(),
  jobEpoch: z.number().int().nonnegative(),
});
export const StopRollout = z.object({ type: z.literal('StopRollout') });

const attempt = z.number().int().nonnegative();
// Reports of whoever drives it. `attempt` names the worker that they are about.
export const ReportRolloutReady = z.object({
  type: z.literal('ReportRolloutReady'),
  attempt,
  worker: SandboxId,
  execId: ExecId,
  sandboxes: z.record(SandboxRole, SandboxId),
});
export const ReportAsked = z.object({
  type: z.literal('ReportAsked'),
  attempt,
  turn: index,
  request: turnRequest,
  requestHash: z.string(),
  steps,
  served: Served,
});
export const ReportDelivered = z.object({ type: z.literal('ReportDelivered'), attempt, turn: index, served: Served });
/** Steps of a long stretch without a turn, so that no commit holds more than its share. */
export const ReportSteps = z.object({ type: z.literal('ReportSteps'), attempt, steps, served: Served });
/** A lost agent sandbox has been made anew, from its newest snapshot when it has one. */
export const ReportReplaced = z.object({ type: z.literal('ReportReplaced'), role: SandboxRole, lost: SandboxId, sandboxId: SandboxId });
/** The worker said its result and ended. */
export const ReportFinished = z.object({
  type: z.literal('ReportFinished'),
  attempt,
  reward: z.number().nullable(),
  result: opaque('a result', ROLLOUT_LIMITS.resultBytes),
  exitCode: z.number().int().nullable(),
  steps,
  served: Served,
});
/** The worker ended without a result, or could not be made. `lost`: its sandbox is gone through no fault of its own. */
export const ReportWorkerEnded = z.object({ type: z.literal('ReportWorkerEnded'), attempt, lost: z.boolean(), error: WireError });
export const ReportCleaned = z.object({ type: z.literal('ReportCleaned') });
export const RolloutDeadlinePassed = z.object({ type: z.literal('RolloutDeadlinePassed'), kind: z.enum(['life', 'transition']), version: index });

export const RolloutCommand = z.discriminatedUnion('type', [
  StartRollout,
  AnswerTurn,
  StopRollout,
  ReportRolloutReady,
  ReportAsked,
  ReportDelivered,
  ReportSteps,
  ReportReplaced,
  ReportFinished,
  ReportWorkerEnded,
  ReportCleaned,
  RolloutDeadlinePassed,
]);
export type RolloutCommand = z.infer<typeof RolloutCommand>;

const at = TimestampMs;
export const RolloutEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('RolloutStarted'),
    at,
    id: RolloutId,
    project: ProjectName,
    jobId: JobId,
    key: ClientKey,
    bodyHash: z.string(),
    spec: RolloutSpec,
    deadlineAt: TimestampMs,
    transitionDeadlineAt: TimestampMs,
  }),
  z.object({ type: z.literal('RolloutRunning'), at, attempt, worker: SandboxId, execId: ExecId, sandboxes: z.record(SandboxRole, SandboxId) }),
  z.object({ type: z.literal('StepsRecorded'), at, steps, served: Served }),
  z.object({ type: z.literal('TurnAsked'), at, turn: index, request: turnRequest, requestHash: z.string(), served: Served }),
  z.object({ type: z.literal('TurnAnswered'), at, turn: index, answer: turnAnswer, answerHash: z.string(), epoch: z.number().int().nonnegative() }),
  z.object({ type: z.literal('TurnDelivered'), at, turn: index, served: Served }),
  z.object({ type: z.literal('SandboxReplaced'), at, role: SandboxRole, lost: SandboxId, sandboxId: SandboxId }),
  /** The worker was lost; a new one is given the recorded answers up to where the old one was. */
  z.object({ type: z.literal('RolloutRestarting'), at, attempt, error: WireError, transitionDeadlineAt: TimestampMs }),
  z.object({
    type: z.literal('RolloutEnding'),
    at,
    outcome: Outcome,
    reward: z.number().nullable(),
    result: z.unknown(),
    exitCode: z.number().int().nullable(),
    error: WireError.nullable(),
    transitionDeadlineAt: TimestampMs,
  }),
  z.object({ type: z.literal('RolloutEndRetried'), at, transitionDeadlineAt: TimestampMs }),
  z.object({ type: z.literal('RolloutEnded'), at }),
]);
export type RolloutEvent = z.infer<typeof RolloutEvent>;

/** `asking`: a turn is open and waits for a trainer. `answering`: its answer is on the way to the worker. */
export const RolloutStatus = z.enum(['preparing', 'running', 'asking', 'answering', 'ending', 'ended']);
export type RolloutStatus = z.infer<typeof RolloutStatus>;

/** The open turn, with its answer once there is one. */
export const OpenTurn = z.object({
  turn: index,
  request: z.unknown(),
  requestHash: z.string(),
  askedAt: TimestampMs,
  answer: z.unknown(),
  answerHash: z.string().nullable(),
});
export type OpenTurn = z.infer<typeof OpenTurn>;

export const RolloutState = z.object({
  id: RolloutId,
  project: ProjectName,
  jobId: JobId,
  key: ClientKey,
  bodyHash: z.string(),
  status: RolloutStatus,
  spec: RolloutSpec,
  createdAt: TimestampMs,
  endedAt: TimestampMs.nullable(),
  deadlineAt: TimestampMs,
  /** When a state on its way to another must have got there. */
  transitionDeadlineAt: TimestampMs.nullable(),
  /** Rises with every transition, so that a stale timer is ignored. */
  transition: index,
  /** Workers so far: the one of number `attempt` is the living one. */
  attempt,
  worker: SandboxId.nullable(),
  execId: ExecId.nullable(),
  sandboxes: z.record(SandboxRole, SandboxId),
  /** Of the living worker. */
  served: Served,
  /** Turns delivered in the whole episode: what a new worker is given from the record. */
  turns: index,
  steps: index,
  open: OpenTurn.nullable(),
  /** Hash of the newest answer that was taken, to tell a repetition from another answer. */
  lastAnswerHash: z.string().nullable(),
  outcome: Outcome.nullable(),
  reward: z.number().nullable(),
  result: z.unknown(),
  exitCode: z.number().int().nullable(),
  error: WireError.nullable(),
});
export type RolloutState = z.infer<typeof RolloutState>;
