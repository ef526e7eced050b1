/**
 * Decides what a client key stands for: which sandboxes on which nodes, the same for the key's whole lifetime.
 *
 * The choice of nodes comes in as data (`actors/placement`); here it is recorded *before* anything is forwarded, so that
 * every redelivery forwards the same choice (INV-KEY: one key, one set of sandboxes). An Edge that refuses an item sends it
 * to another node, a bounded number of times. Does not decide where: that is the policy; nor whether it fits: that is the Edge.
 * @paper §3.2 §7
 */
import { type ErrorCode, type WireError, wireError } from '#bus/errors.ts';
import { type EdgeName, type RequestId, RequestId as RequestIdSchema, sandboxIdFor } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { Assignment, RequestCommand, RequestEvent, RequestItem, RequestState } from '#bus/request/schema.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { REQUEST_LIMITS } from './limits.ts';

type RequestDecision = Decision<RequestEvent>;
type Place = Extract<RequestCommand, { type: 'PlaceSandboxes' }>;
type OverQuota = Extract<RequestCommand, { type: 'ReportOverQuota' }>;
type Refused = Extract<RequestCommand, { type: 'ReportRefused' }>;

export const decideRequest = (state: RequestState | null, command: RequestCommand, context: DecisionContext): RequestDecision => {
  const { address } = context;
  if (command.requestId !== address.id || command.project !== address.project)
    return reject(
      wireError('INVALID_ARGUMENT', `${command.type} for request ${command.requestId} of ${command.project} was sent to ${address.id} of ${address.project}`),
    );
  if (command.type === 'PlaceSandboxes') return state ? placeAgain(state, command, context.at) : place(command, context.at);
  if (!state) return reject(wireError('REQUEST_NOT_FOUND', `there is no request ${address.id} in project ${address.project}; its key may have expired`));
  return command.type === 'ReportOverQuota' ? overQuota(state, command, context.at) : refused(state, command, context.at);
};

const place = (command: Place, at: TimestampMs): RequestDecision => {
  const { requestId, project, key, bodyHash, count, spec, forkedFrom, deadlineAt, choices, quota } = command;
  if (!RequestIdSchema.safeParse(requestId).success || count < 1 || choices.length !== count)
    return reject(
      wireError('INVALID_ARGUMENT', `request ${requestId} asks for ${count} sandboxes and has ${choices.length} choices; placement must give one each`),
    );
  const keyExpiresAt = addMs(at, KEY_LIMITS.requestKeyLifetimeMs as DurationMs);
  const accepted: RequestEvent = {
    type: 'RequestAccepted',
    at,
    id: requestId,
    project,
    key,
    bodyHash,
    count,
    spec,
    forkedFrom,
    deadlineAt,
    keyExpiresAt,
    quotaLease: quota?.lease ?? null,
  };
  if (at >= deadlineAt) return accept(accepted, ...choices.map((_, index) => unplaceable(index, tooLate(requestId), at)));

  const assignments: Assignment[] = [];
  const unplaced: RequestEvent[] = [];
  for (const [index, edge] of choices.entries()) {
    if (quota?.error && index >= quota.count) unplaced.push(unplaceable(index, quota.error, at));
    else if (edge) assignments.push(assignmentOf(requestId, index, 0, edge));
    else unplaced.push(unplaceable(index, noCapacity(null, spec), at));
  }
  const assigned: RequestEvent[] = assignments.length > 0 ? [{ type: 'SandboxesAssigned', at, assignments }] : [];
  return accept(accepted, ...assigned, ...unplaced);
};

const placeAgain = (state: RequestState, command: Place, at: TimestampMs): RequestDecision => {
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
  return ignore('the same request has been placed already');
};

const refused = (state: RequestState, { index, attempt, error, choice }: Refused, at: TimestampMs): RequestDecision => {
  const item = state.items[index];
  if (!item) return reject(wireError('INVALID_ARGUMENT', `request ${state.id} has ${state.items.length} items, none with index ${index}`));
  if (item.error) return ignore('this item has been given up already');
  if (item.attempt !== attempt) return ignore(`the refusal is about attempt ${attempt}, the item is at ${item.attempt}`);
  const late = at >= state.deadlineAt;
  if (choice && !late && mayTry(item, choice, error))
    return accept({ type: 'SandboxesAssigned', at, assignments: [assignmentOf(state.id, index, attempt + 1, choice)] });
  return accept(unplaceable(index, finalError(state.id, error, late), at));
};

const overQuota = (state: RequestState, { error }: OverQuota, at: TimestampMs): RequestDecision => {
  const [first, ...rest] = state.items.flatMap((item, index) => (item.error ? [] : [unplaceable(index, error, at)]));
  return first ? accept(first, ...rest) : ignore('every item has been given up already');
};

/** A refusal that says what is wrong with the request stays as it is; one about room becomes the fleet's answer. */
const finalError = (requestId: RequestId, last: WireError, late: boolean): WireError => {
  if (!isAboutCapacity(last)) return last;
  return late ? tooLate(requestId) : noCapacity(last, null);
};

const mayTry = (item: RequestItem, choice: EdgeName, error: WireError): boolean =>
  item.attempt + 1 < REQUEST_LIMITS.attemptsPerItem && choice !== item.edge && !item.refusedBy.includes(choice) && mayHelp(error);

/** What is wrong with the request itself is wrong on every node; what one node lacks, another may have. */
const mayHelp = ({ fault, retry }: WireError): boolean => retry !== 'never' || fault === 'infra';

const CAPACITY_CODES: ReadonlySet<ErrorCode> = new Set(['NO_CAPACITY', 'NODE_FULL', 'OVERLOADED']);
const isAboutCapacity = ({ code }: WireError): boolean => CAPACITY_CODES.has(code);

/** Keeps what the last node said, or what was asked for, so that a person sees which limit was met. */
const noCapacity = (last: WireError | null, spec: SandboxSpec | null): WireError => {
  const asked = spec ? ` (asked for ${spec.limits.memoryMiB} MiB of memory, ${spec.limits.cpuMillis / 1_000} CPUs, ${spec.limits.pids} processes)` : '';
  const message = `no node has room for this sandbox; try again later or ask for less${last ? ` (last refusal: ${last.message})` : asked}`;
  const details = last ? { lastCode: last.code, ...last.details } : spec ? { asked: spec.limits } : {};
  return wireError('NO_CAPACITY', message, last ? { details, retry: last.retry } : { details });
};
const tooLate = (requestId: RequestId): WireError =>
  wireError('DEADLINE_EXCEEDED', `request ${requestId} could not be placed before its deadline; create again with a longer timeout`, {
    outcome: 'not_applied',
  });

const unplaceable = (index: number, error: WireError, at: TimestampMs): RequestEvent => ({ type: 'SandboxUnplaceable', at, index, error });
const assignmentOf = (requestId: RequestId, index: number, attempt: number, edge: EdgeName): Assignment => ({
  index,
  attempt,
  edge,
  sandboxId: sandboxIdFor(requestId, index, attempt, edge),
});
