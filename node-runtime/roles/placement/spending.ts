/** What a create's quota means for its placement: room before the commit, certainty before anything is forwarded. */
import { DsecError } from '#bus/errors.ts';
import { needOf, payerOf } from '#bus/project/quota.ts';
import type { RequestState, ReservedQuota } from '#bus/request/schema.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { Quota, Reservation } from '#actors/ports/quota.ts';
import type { JobLooks } from '../job-looks.ts';

export type Room = { readonly quota: ReservedQuota; readonly reservation: Reservation | null };

/** Room for as many as there is, none for members of a job that has ended; a number: ask again after so many milliseconds. */
export const roomFor = async (
  quota: Quota,
  jobs: JobLooks,
  request: { readonly project: ProjectName; readonly spec: SandboxSpec; readonly count: number },
): Promise<Room | number> => {
  const ended = await jobs.refusal(request.project, request.spec);
  if (ended) return { quota: { lease: null, count: 0, error: ended }, reservation: null };
  const outcome = await quota.reserve(payerOf(request.project, request.spec), needOf(request.spec), request.count);
  if (outcome.outcome === 'later') return outcome.retryAfterMs;
  if (outcome.outcome === 'refused') return { quota: { lease: null, count: 0, error: outcome.error }, reservation: null };
  const { reservation } = outcome;
  return { quota: { lease: reservation.lease, count: reservation.count, error: reservation.error }, reservation };
};

/**
 * After the decision: `forward` what is known to count, `refuse` with the error what does not. Throws IAM_UNAVAILABLE when that
 * cannot be known now. What was decided without a commit of ours returns its room.
 */
export const settleRoom = async (
  quota: Quota,
  room: Room | null,
  result: CommandResult,
  held: { readonly state: RequestState; readonly sequence: number } | null,
): Promise<DsecError | null> => {
  const reservation = room?.reservation ?? null;
  if (!result.ok || !held || held.state.quotaLease === null || held.state.quotaLease !== reservation?.lease) reservation?.cancel();
  else if (reservation.committed(held.state.items.filter(({ error }) => !error).length)) return null;
  if (!result.ok || !held?.state.quotaLease || held.state.items.every(({ error }) => error)) return null;
  const { project, id, spec, quotaLease: lease } = held.state;
  const confirmed = await quota.confirm({ payer: payerOf(project, spec), id, lease, sequence: held.sequence });
  if (confirmed.outcome === 'later')
    throw confirmed.error ? new DsecError(confirmed.error) : DsecError.of('IAM_UNAVAILABLE', `whether request ${id} has room is not known yet`);
  return confirmed.outcome === 'exceeded'
    ? new DsecError(confirmed.error ?? DsecError.of('QUOTA_EXCEEDED', `project ${project} has no room for request ${id}`).toWire())
    : null;
};
