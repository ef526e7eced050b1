/** Gives a worker the answer to its open turn, at its own place in the worker's stdin. */
import { DsecError } from '#bus/errors.ts';
import type { ExecId, SandboxId } from '#bus/ids.ts';
import type { RolloutCommand, RolloutState } from '#bus/rollout/schema.ts';
import { StdinWriter } from '../exec/stdin-writer.ts';
import type { Session } from '../session.ts';
import { isLoss, lineBytes } from './serve.ts';
import { workerEnded } from './worker.ts';

type Report = Extract<RolloutCommand, { type: `Report${string}` }>;

export const deliverAnswer = async (session: Session, state: RolloutState, signal: AbortSignal): Promise<Report> => {
  const { open, attempt, served } = state;
  if (!open) throw DsecError.of('INTERNAL', `${state.id} has no open turn to answer`);
  const bytes = lineBytes({ type: 'answer', turn: open.turn, answer: open.answer });
  const [sandboxId, execId] = [state.worker as SandboxId, state.execId as ExecId];
  try {
    await new StdinWriter({ ops: session.ops, clock: session.clock, sandboxId, execId, signal, offset: served.stdinBytes }).write(bytes);
  } catch (thrown) {
    if (isLoss(thrown)) return workerEnded(state, thrown.toWire());
    // The worker ended without reading: how it ended shows when it is served.
    if (!(thrown instanceof DsecError) || thrown.code !== 'STDIN_CLOSED') throw thrown;
  }
  return { type: 'ReportDelivered', attempt, turn: open.turn, served: { ...served, stdinBytes: served.stdinBytes + bytes.byteLength } };
};
