/**
 * Decides what a client key stands for: which sandboxes on which nodes, the same for the key's whole lifetime.
 *
 * The choice of nodes comes in as data (`actors/placement`); here it is recorded *before* anything is forwarded, so that
 * every redelivery forwards the same choice (INV-KEY: one key, one set of sandboxes). What is true of items is in
 * `request.items.ts`, of groups and their chunks in `request.group.ts`. Does not decide where: that is the policy; nor whether it
 * fits: that is the Edge.
 * @paper §3.2 §7
 */
import { wireError } from '#bus/errors.ts';
import type { RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { acceptGroup, chunkReported, decideChunk, groupOverdue } from './request.group.ts';
import { overQuota, place, reportBatch } from './request.items.ts';

type RequestDecision = Decision<RequestEvent>;
type Begin = Extract<RequestCommand, { type: 'PlaceSandboxes' | 'PlaceGroup' }>;

export const decideRequest = (state: RequestState | null, command: RequestCommand, context: DecisionContext): RequestDecision => {
  const { address, at } = context;
  if (command.requestId !== address.id || command.project !== address.project)
    return reject(
      wireError('INVALID_ARGUMENT', `${command.type} for request ${command.requestId} of ${command.project} was sent to ${address.id} of ${address.project}`),
    );
  if (command.type === 'PlaceSandboxes' || command.type === 'PlaceGroup') {
    if (state) return placeAgain(state, command, at);
    return command.type === 'PlaceGroup' ? acceptGroup(command, at) : place(command, at);
  }
  if (!state) return reject(wireError('REQUEST_NOT_FOUND', `there is no request ${address.id} in project ${address.project}; its key may have expired`));
  switch (command.type) {
    case 'ReportOverQuota':
      return overQuota(state, command, at);
    case 'ReportBatch':
      return reportBatch(state, command, at);
    case 'ReportChunk':
      return chunkReported(state, command, at);
    case 'DecideChunk':
      return decideChunk(state, command, at);
  }
};

const placeAgain = (state: RequestState, command: Begin, at: TimestampMs): RequestDecision => {
  if (at >= state.keyExpiresAt)
    return reject(
      wireError('KEY_EXPIRED', `key ${state.key} was used before and its lifetime is over; create under a new key`, {
        details: { keyExpiresAt: state.keyExpiresAt },
      }),
    );
  if (command.key !== state.key || command.bodyHash !== state.bodyHash)
    return reject(
      wireError('KEY_CONFLICT', `key ${command.key} already names a request with another body; use a new key for a new request`, {
        details: { requestId: state.id },
      }),
    );
  return groupOverdue(state, at) ?? ignore('the same request has been placed already');
};
