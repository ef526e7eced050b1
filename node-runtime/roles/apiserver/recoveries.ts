/**
 * A sandbox in the place of one that was lost: what it stands on, and what it takes over. @paper §6.2
 *
 * The lost one must have ended, or its node must have been declared lost: beside a living one it would do the same work twice.
 */
import { DsecError } from '#bus/errors.ts';
import type { JobId, ProjectName, SandboxId, SnapshotId } from '#bus/ids.ts';
import { PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import type { SnapshotView } from '#bus/sandbox/snapshot.ts';
import { ENDED_STATUSES, SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { type Losses, viewWithLoss } from './losses.ts';
import type { Stack } from './resolve.ts';

/** SANDBOX_NOT_FOUND, INVALID_STATE. */
export const lostSandbox = async (o: { readonly eventLog: EventLog; readonly losses: Losses }, project: ProjectName, id: SandboxId): Promise<SandboxState> => {
  const stored = await o.eventLog.last(sandboxAddress(project, id));
  if (!stored) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id} in project ${project} to recover; see dsec ls`);
  const state = SandboxState.parse(stored.commit.state);
  const view = viewWithLoss({ version: stored.commit.version, streamSequence: stored.sequence, state, lost: false }, o.losses);
  if (view.lost || ENDED_STATUSES.has(view.state.status)) return state;
  throw DsecError.of('INVALID_STATE', `sandbox ${id} is ${state.status} and not lost; fork it, or stop it first`, { details: { status: state.status } });
};

/** The lost one's settings, where the request says nothing else. It stays in its job and its episode. */
export const inPlaceOf = ({ spec }: SandboxState, request: SandboxRequest): SandboxRequest => {
  const job = request.job ?? (spec.labels[PLATFORM_LABELS.job] as JobId | undefined);
  return {
    ...request,
    limits: { ...spec.limits, ...request.limits },
    lives: { ...spec.lives, ...request.lives },
    networkRules: { ...spec.networkRules, ...request.networkRules },
    env: { ...spec.env, ...request.env },
    labels: { ...spec.labels, ...request.labels },
    require: { ...spec.require, ...request.require },
    isolation: spec.isolation,
    initUser: request.initUser === 'root' ? spec.initUser : request.initUser,
    recordCommands: spec.recordCommands || request.recordCommands,
    ...(job === undefined ? {} : { job }),
    ...(spec.hostname === null ? {} : { hostname: request.hostname ?? spec.hostname }),
  };
};

/** Its newest snapshot that is still there, else its image. */
export const leftOf = async (lost: SandboxState, find: (id: SnapshotId) => SnapshotView | Promise<SnapshotView>): Promise<Stack> => {
  for (const { id, purpose } of [...lost.snapshots].reverse()) {
    if (purpose !== 'keep') continue;
    try {
      const { layers, at, facts } = await find(id);
      const begunAt = (at - Math.ceil(facts.totalMs)) as TimestampMs;
      return { layers, image: lost.spec.image, recoveredFrom: { sandbox: lost.id, snapshot: { id, begunAt } } };
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.code !== 'SNAPSHOT_NOT_FOUND') throw thrown;
    }
  }
  return { layers: lost.spec.layers, image: lost.spec.image, recoveredFrom: { sandbox: lost.id, snapshot: null } };
};
