/**
 * The verb `fork`: has the origin captured, then places the forks on top. Nothing is kept between two calls: each looks at the log
 * and does what is missing, so whoever dies in between, the same call goes on, and places once.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiParsed, ApiResponse, SandboxView } from '#bus/api/schema.ts';
import { DsecError, type WireError } from '#bus/errors.ts';
import { bodyHashOf, type ClientKey, requestIdFor, type SandboxId, SnapshotId } from '#bus/ids.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { refusalOf } from '#actors/project/authority.ts';
import { forkRequestOf, forkStep } from '#actors/sandbox/sandbox.fork.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { Caller } from './apiserver.ts';
import { isKnown, storeCreate, withResolved } from './create.ts';
import { APISERVER_LIMITS } from './limits.ts';
import { lifecycle, newest } from './one-sandbox.ts';
import type { VerbsOptions } from './verbs.ts';

export const fork = async (o: VerbsOptions, request: ApiParsed<'fork'>, caller: Caller): Promise<ApiResponse<'fork'>> => {
  const { project } = caller;
  const { id, key, count, changes, timeoutMs } = request;
  // It makes sandboxes, and it stops one for a moment and reads all it has written.
  const refused = refusalOf('sandbox.control', caller, project, 'fork');
  if (refused) throw new DsecError(refused);
  const answer = { requestId: requestIdFor(project, key, o.shards.length), bodyHash: bodyHashOf({ fork: id, count, changes }) };
  if (await isKnown(o, project, answer)) return { decision: 'accepted', ...answer };
  const captureId = captureIdFor(id, key);
  const origin = await captured(o, caller, id, captureId);
  if (!origin) return { decision: 'pending', ...answer };
  const resolved = await withResolved(o, project, forkRequestOf(origin, captureId, changes));
  await storeCreate(o, { key, count, mode: 'asManyAsFit', timeoutMs }, caller, answer, resolved);
  return { decision: 'accepted', ...answer };
};

/** A function of the key, so that a repeated call asks for the same. */
const captureIdFor = (origin: SandboxId, key: ClientKey): SnapshotId =>
  SnapshotId.parse(`fork-${createHash('sha256').update(`${origin}\0${key}`).digest('hex').slice(0, 32)}`);

/** The origin with its capture; null when that takes longer than one call may. What the capture fails with is thrown. */
const captured = async (o: VerbsOptions, caller: Caller, id: SandboxId, captureId: SnapshotId): Promise<SandboxState | null> => {
  const giveUpAt = o.clock.monotonicMs() + APISERVER_LIMITS.forkWaitMs;
  let askedAt: number | null = null;
  for (let pauseMs: number = APISERVER_LIMITS.forkLookFirstMs; ; pauseMs = Math.min(pauseMs * 2, APISERVER_LIMITS.forkLookSlowestMs)) {
    const view = await newest(o, caller.project, id);
    if (!view) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id} in project ${caller.project}; see dsec ls`, { details: { sandboxId: id } });
    const step = forkStep(view.state, captureId);
    if (step.do === 'place') return step.origin;
    if (step.do === 'refuse') throw new DsecError(step.error);
    const failure = askedAt === null ? null : await failureAfter(o, caller, id, askedAt);
    if (failure) throw new DsecError(failure);
    const leftMs = giveUpAt - o.clock.monotonicMs();
    if (leftMs <= 0) return null;
    if (step.do === 'capture' && askedAt === null) askedAt = await ask(o, caller, view, captureId);
    else await sleep(Math.min(pauseMs, leftMs));
  }
};

/** The version at which the capture began; null when the origin has changed meanwhile and has to be looked at again. */
const ask = async (o: VerbsOptions, caller: Caller, { version, state: { id } }: SandboxView, snapshotId: SnapshotId): Promise<number | null> => {
  try {
    // Under a key of its own each time: one that was refused is not asked again by the queue.
    const decision = await lifecycle(o, id, { type: 'SnapshotSandbox', snapshotId, scrub: [], purpose: 'fork' }, undefined, caller);
    return decision.version ?? version;
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'INVALID_STATE') return null;
    throw thrown;
  }
};

const failureAfter = async (o: VerbsOptions, { project }: Caller, id: SandboxId, version: number): Promise<WireError | null> => {
  const commits = await o.eventLog.history(sandboxAddress(project, id), version, APISERVER_LIMITS.forkCommitsLooked);
  const events = commits.flatMap(({ commit }) => commit.events as readonly { readonly type: string; readonly error?: WireError }[]);
  return events.find(({ type }) => type === 'SandboxTransitionFailed')?.error ?? null;
};
