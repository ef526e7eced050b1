/** Makes the sandboxes of an episode and starts its worker; each under a key of its own, so that a repetition finds them. */
import { DsecError, type WireError } from '#bus/errors.ts';
import { ClientKey, type RolloutId, type SandboxId } from '#bus/ids.ts';
import { ROLLOUT_LIMITS } from '#bus/limits.ts';
import type { RolloutCommand, RolloutState } from '#bus/rollout/schema.ts';
import { PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import { createAndWait } from '../create/create-waiter.ts';
import { startCommand } from '../exec/command.ts';
import { startOrder } from '../exec/exec-options.ts';
import type { Session } from '../session.ts';
import { EPISODE_LIMITS } from './limits.ts';

type Report = Extract<RolloutCommand, { type: `Report${string}` }>;

/** `worker` is no name of a role: roles of the agent's sandboxes are listed beside it. */
const WORKER = 'worker';

export const makeWorker = async (session: Session, state: RolloutState, signal: AbortSignal): Promise<Report> => {
  const { attempt, spec } = state;
  try {
    const [worker, ...made] = await Promise.all([
      makeSandbox(session, state, WORKER, `${attempt}`, spec.worker.sandbox, signal),
      ...Object.entries(spec.sandboxes).map(async ([role, request]) => {
        const known = state.sandboxes[role];
        return [role, known ?? (await makeSandbox(session, state, role, `${attempt}`, request, signal))] as const;
      }),
    ]);
    const { argv, ...program } = spec.worker.program;
    const order = startOrder({ argv }, { ...program, key: `${state.id}/loop`, stdin: 'open', outputLimitBytes: ROLLOUT_LIMITS.workerOutputBytes });
    const { execId } = await startCommand(session, worker, order);
    return { type: 'ReportRolloutReady', attempt, worker, execId, sandboxes: Object.fromEntries(made) };
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.code === 'CANCELLED' || thrown.outcome === 'unknown') throw thrown;
    return workerEnded(state, thrown.toWire());
  }
};

/** What is no fault of the episode's own is worth another worker. */
export const workerEnded = ({ attempt }: RolloutState, error: WireError): Extract<Report, { type: 'ReportWorkerEnded' }> => ({
  type: 'ReportWorkerEnded',
  attempt,
  lost: error.fault === 'infra' || error.fault === 'preempted',
  error,
});

/** `which` tells sandboxes of one role apart: the first, and those that take the place of a lost one. */
export const makeSandbox = async (
  session: Session,
  { id, jobId }: RolloutState,
  role: string,
  which: string,
  request: SandboxRequest,
  signal: AbortSignal,
): Promise<SandboxId> => {
  const key = sandboxKey(id, role, which);
  const labels = { ...request.labels, [PLATFORM_LABELS.rollout]: id, [PLATFORM_LABELS.role]: role };
  const order = { key, count: 1, spec: { ...request, labels, job: jobId }, mayExist: true };
  const deadlineAt = session.clock.now() + EPISODE_LIMITS.createTimeoutMs;
  const { items } = await createAndWait(session, order, { deadlineAt, timeoutMs: EPISODE_LIMITS.createTimeoutMs, signal });
  const outcome = items[0]?.outcome;
  if (!outcome) throw DsecError.of('OUTCOME_UNKNOWN', `sandbox ${role} of ${id} was not heard of in time`);
  if (!outcome.ok) throw new DsecError(outcome.error);
  return outcome.state.id;
};

const sandboxKey = (id: RolloutId, role: string, which: string): ClientKey => ClientKey.parse(`${id}/${role}/${which}`);
