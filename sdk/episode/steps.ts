/** One tool step: run under a key that the episode's own count gives it, told to the worker and to the trajectory. */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import { execIdFor, ClientKey, type SandboxId } from '#bus/ids.ts';
import { ROLLOUT_LIMITS } from '#bus/limits.ts';
import type { RolloutState, StepRecord } from '#bus/rollout/schema.ts';
import type { PlatformLine, StepRequest } from '#bus/rollout/worker-protocol.ts';
import type { DurationMs, TimestampMs } from '#bus/units.ts';
import { runCommand } from '../exec/command.ts';
import { execOrder } from '../exec/exec-options.ts';
import type { ExecResult } from '../exec/exec-result.ts';
import { decodeText } from '../exec/text.ts';
import type { Session } from '../session.ts';

export type Done = Extract<PlatformLine, { type: 'done' }>;
export type StepPlace = { readonly state: RolloutState; readonly step: number; readonly sandboxId: SandboxId };

/** The same step of the same episode in the same sandbox never runs twice. */
const stepKey = ({ state, step }: StepPlace): ClientKey => ClientKey.parse(`${state.id}/step-${step}`);

/** Errors of the platform are thrown; what the worker asked wrongly comes back as its step's error. */
export const runStep = async (session: Session, place: StepPlace, request: StepRequest, signal: AbortSignal): Promise<{ done: Done; record: StepRecord }> => {
  const { type: _, sandbox, argv, shell, ...options } = request;
  const key = stepKey(place);
  const startedAt = session.clock.now();
  try {
    const order = execOrder(argv ? { argv } : { shell: shell ?? '' }, { ...options, key, signal });
    const result = await runCommand(session, place.sandboxId, order);
    return { done: doneOf(place.step, result), record: recordOf(place, request, result) };
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.fault === 'infra' || thrown.code === 'CANCELLED' || thrown.outcome === 'unknown') throw thrown;
    const record = {
      ...blankRecord(place, request),
      execId: execIdFor(place.sandboxId, key),
      startedAt: startedAt as TimestampMs,
      durationMs: (session.clock.now() - startedAt) as DurationMs,
      error: thrown.toWire(),
    };
    return { done: failedStep(place.step, thrown.toWire()), record };
  }
};

export const failedStep = (step: number, error: WireError): Done => ({
  type: 'done',
  step,
  exitCode: null,
  signal: null,
  reason: null,
  fault: error.fault,
  stdout: '',
  stderr: '',
  stdoutBytes: 0,
  stderrBytes: 0,
  error,
  restored: null,
});

export const unknownRole = (role: string, { sandboxes }: RolloutState): WireError =>
  wireError('INVALID_ARGUMENT', `this episode has no sandbox ${role}; it has: ${Object.keys(sandboxes).join(', ') || 'none'}`);

const doneOf = (step: number, result: ExecResult): Done => ({
  type: 'done',
  step,
  exitCode: result.exitCode,
  signal: result.signal,
  reason: result.reason,
  fault: result.fault,
  stdout: excerpt(result.stdoutBytes),
  stderr: excerpt(result.stderrBytes),
  stdoutBytes: result.stdoutTotalBytes,
  stderrBytes: result.stderrTotalBytes,
  error: null,
  restored: null,
});

/** Beginning and end of what is longer than a worker is given: errors stand at the end, what was done at the beginning. */
const excerpt = (bytes: Uint8Array): string => {
  const limit = ROLLOUT_LIMITS.stepOutputBytes;
  if (bytes.byteLength <= limit) return decodeText(bytes);
  const half = limit / 2;
  return `${decodeText(bytes.subarray(0, half))}\n… ${bytes.byteLength - limit} bytes left out …\n${decodeText(bytes.subarray(bytes.byteLength - half))}`;
};

const blankRecord = ({ step, sandboxId }: StepPlace, { sandbox, argv, shell }: StepRequest): StepRecord => ({
  step,
  role: sandbox,
  sandboxId,
  execId: null,
  command: cut(shell ?? (argv ?? []).join(' ')),
  exitCode: null,
  reason: null,
  stdoutBytes: 0,
  stderrBytes: 0,
  startedAt: 0 as TimestampMs,
  durationMs: 0 as DurationMs,
  error: null,
  replayed: false,
});

const recordOf = (place: StepPlace, request: StepRequest, result: ExecResult): StepRecord => ({
  ...blankRecord(place, request),
  execId: result.execId,
  replayed: result.replayed,
  exitCode: result.exitCode,
  reason: result.reason,
  stdoutBytes: result.stdoutTotalBytes,
  stderrBytes: result.stderrTotalBytes,
  startedAt: result.startedAt as TimestampMs,
  durationMs: Math.max(0, (result.endedAt ?? result.startedAt) - result.startedAt) as DurationMs,
});

const cut = (command: string): string => command.slice(0, ROLLOUT_LIMITS.stepCommandBytes);
