/**
 * The verb `create`: one sandbox, or up to 32,768 equal ones under one key. Answered when the command is stored; what becomes of it
 * is in the request actor that the key names.
 */
import type { ApiParsed, ApiResponse } from '#bus/api/schema.ts';
import type { CommandEnvelope } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { bodyHashOf, messageIdOf, type ProjectName, type RequestId, requestIdFor, type SandboxId, type SnapshotId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { RequestBusCommand, RequestState } from '#bus/request/schema.ts';
import type { SandboxRequest } from '#bus/sandbox/spec.ts';
import { createLaneSubject, laneOf, requestAddress } from '#bus/subjects.ts';
import { addMs } from '#bus/units.ts';
import type { Caller } from './apiserver.ts';
import { asJobMember } from './job-member.ts';
import { type Resolve, type ResolvedSpec, resolveSpec } from './resolve.ts';
import { captureOf } from './captures.ts';
import { inPlaceOf, leftOf, lostSandbox } from './recoveries.ts';
import type { VerbsOptions } from './verbs.ts';

export const create = async (o: VerbsOptions, request: ApiParsed<'create'>, caller: Caller): Promise<ApiResponse<'create'>> => {
  const { project } = caller;
  const requestId = requestIdFor(project, request.key, o.shards.length);
  const bodyHash = bodyHashOf({ count: request.count, mode: request.mode, spec: request.spec });
  const answer = { requestId, bodyHash };
  const resolved = await withResolved(o, project, request.spec).catch(async (thrown: unknown) => {
    // A key that was accepted keeps its answer, also when an image it named has been removed since.
    if (await isKnown(o, project, answer)) return null;
    throw thrown;
  });
  if (!resolved) return answer;
  // Storing is harmless when the key is known, so both go out together: one round trip, not two.
  await Promise.all([request.freshKey ? null : isKnown(o, project, answer), storeCreate(o, request, caller, answer, resolved)]);
  return answer;
};

/** Names to digests, defaults, the job's bounds. */
export const withResolved = async (o: VerbsOptions, project: ProjectName, request: SandboxRequest): Promise<ResolvedSpec> => {
  const { image } = request;
  const lost = typeof image === 'object' && 'recover' in image ? await lostSandbox(o, project, image.recover) : null;
  const asked = lost ? inPlaceOf(lost, request) : request;
  const resolve: Resolve = {
    stack: o.resolveStack,
    taken: (from) => {
      if (lost) return leftOf(lost, (id) => o.snapshots.find(project, id));
      return 'snapshot' in from ? snapshotTaken(o, project, from) : Promise.reject(DsecError.of('INTERNAL', 'nothing was taken'));
    },
  };
  const { request: member, share } = await asJobMember(o.eventLog, project, asked, o.clock.now());
  return resolveSpec(member, resolve, o.defaultLimits, share);
};

type Placing = Pick<ApiParsed<'create'>, 'key' | 'count' | 'mode' | 'timeoutMs'>;

/** Resolves when the command to place them is stored. OVERLOADED when too many wait. Harmless when the key is known. */
export const storeCreate = async (o: VerbsOptions, placing: Placing, caller: Caller, answer: ApiResponse<'create'>, resolved: ResolvedSpec): Promise<void> => {
  const { project } = caller;
  const envelope = envelopeOf(o, placing, caller, answer, resolved);
  const lane = laneOf(project, o.laneCount);
  o.waiting.enter(envelope.id, project, lane);
  await o.decisions.storeCreate(createLaneSubject(lane), envelope).catch((thrown: unknown) => {
    o.waiting.leave(envelope.id);
    throw thrown;
  });
};

const snapshotTaken = async (o: VerbsOptions, project: ProjectName, { snapshot, sandbox }: { snapshot: SnapshotId; sandbox?: SandboxId | undefined }) => {
  if (sandbox !== undefined) return captureOf(o, project, sandbox, snapshot);
  const { layers, sandboxId } = await o.snapshots.find(project, snapshot);
  return { layers, image: `snapshot ${snapshot}`, forkedFrom: sandboxId };
};

const envelopeOf = (
  o: VerbsOptions,
  { key, count, mode, timeoutMs }: Placing,
  { project, principal, traceparent }: Caller,
  { requestId, bodyHash }: ApiResponse<'create'>,
  { spec, forkedFrom }: ResolvedSpec,
): CommandEnvelope => {
  const now = o.clock.now();
  const asked = { project, key, requestId, bodyHash, count, spec, forkedFrom, deadlineAt: addMs(now, timeoutMs) };
  const data: RequestBusCommand = isGroup({ count, mode }) ? { type: 'PlaceGroup', mode, ...asked } : { type: 'PlaceSandboxes', chunkOf: null, ...asked };
  const id = messageIdOf(project, requestId, 'place', bodyHash);
  const trace = traceparent ? { traceparent } : {};
  return { v: 1, id, at: now, project, principal, correlationId: requestId, deadlineAt: asked.deadlineAt, data, ...trace };
};

/** What does not fit into one message, or has to be decided as a whole. */
const isGroup = ({ count, mode }: Pick<ApiParsed<'create'>, 'count' | 'mode'>): boolean => count > WIRE_LIMITS.maxCreatesPerMessage || mode === 'allOrNothing';

/** Whether the key already names an equal request. KEY_CONFLICT when it names another one, KEY_EXPIRED when it is too old. */
export const isKnown = async (
  o: VerbsOptions,
  project: ProjectName,
  { requestId, bodyHash }: { readonly requestId: RequestId; readonly bodyHash: string },
): Promise<boolean> => {
  const stored = await o.eventLog.last(requestAddress(project, requestId));
  if (!stored) return false;
  const state = stored.commit.state as unknown as RequestState;
  if (state.bodyHash !== bodyHash)
    throw DsecError.of('KEY_CONFLICT', `key ${state.key} already names a create with another body; use a new key for a new request`, {
      details: { requestId, key: state.key },
    });
  if (state.keyExpiresAt <= o.clock.now())
    throw DsecError.of('KEY_EXPIRED', `key ${state.key} named a create that is too old to be answered; use a new key`, { details: { requestId } });
  return true;
};
