/**
 * Which sandboxes are lost with their Edge: derived, never committed for each of them.
 *
 * INV-LOST: one `EdgeLost {generation}` decides for every sandbox that this generation or an earlier one has admitted and that
 * had not ended. The same function answers in the apiserver, in placement, in the Edge that comes back and in clients.
 * @paper §3.2
 */
import { type WireError, wireError } from '../errors.ts';
import { ENDED_STATUSES, type SandboxState } from '../sandbox/state.ts';
import type { EdgeState } from './schema.ts';

export type Loss = Pick<EdgeState, 'name' | 'lostGeneration' | 'lostAt'>;

export const isLostWith = ({ status, generation }: Pick<SandboxState, 'status' | 'generation'>, loss: Loss | undefined): boolean =>
  loss !== undefined && generation <= loss.lostGeneration && !ENDED_STATUSES.has(status);

export const sandboxLostError = (id: string, { name, lostGeneration }: Loss): WireError =>
  wireError('SANDBOX_LOST', `sandbox ${id} was lost with node ${name}, which was declared lost; create it again`, {
    details: { edge: name, generation: lostGeneration },
  });

/** The sandbox as it is, once the loss of its Edge is counted in. */
export const withLoss = (state: SandboxState, loss: Loss | undefined): SandboxState => {
  if (!loss || !isLostWith(state, loss)) return state;
  const over = { endedAt: loss.lostAt, transitionDeadlineAt: null };
  // One that was being ended has ended, as it was going to; the Edge that comes back will commit the same.
  if (state.status === 'stopping') return { ...state, ...over, status: state.failure ? 'failed' : 'stopped' };
  return { ...state, ...over, status: 'failed', stopReason: 'failed', failure: sandboxLostError(state.id, loss) };
};
