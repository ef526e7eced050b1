/**
 * Forks of a sandbox: what has to happen before they can be made, and what they take over from it. Pure; the apiserver acts on it.
 * @paper §6.1
 *
 * A fork stands on a capture, a snapshot without a name that the origin's record lists. The capture's id is a function of the client's
 * key, so a repeated call finds it, and may find it after the origin has ended.
 */
import type { ForkChanges } from '#bus/api/fork.ts';
import { type WireError, wireError } from '#bus/errors.ts';
import type { JobId, SnapshotId } from '#bus/ids.ts';
import { PLATFORM_LABELS, type SandboxRequest } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';

/** `wait`: it is on its way to a state in which it can be captured. */
export type ForkStep =
  | { readonly do: 'place'; readonly origin: SandboxState }
  | { readonly do: 'capture' }
  | { readonly do: 'wait' }
  | { readonly do: 'refuse'; readonly error: WireError };

const STEPS: Record<Exclude<SandboxStatus, 'stopped' | 'failed' | 'stopping'>, 'capture' | 'wait'> = {
  admitted: 'wait',
  preparing: 'wait',
  starting: 'wait',
  running: 'capture',
  pausing: 'wait',
  paused: 'capture',
  resuming: 'wait',
  snapshotting: 'wait',
};

export const forkStep = (origin: SandboxState, capture: SnapshotId): ForkStep => {
  const { id, status, stopReason } = origin;
  if (origin.snapshots.some((made) => made.id === capture)) return { do: 'place', origin };
  if (ENDED_STATUSES.has(status)) {
    const why = origin.failure ? `: ${origin.failure.message}` : '';
    const message = `${id} has ended (${status}, reason ${stopReason}) and nothing of it is left to fork${why}; fork a live one, or start from a snapshot`;
    return { do: 'refuse', error: wireError('SANDBOX_ENDED', message, { details: { sandboxId: id, status, stopReason } }) };
  }
  if (status === 'stopping')
    return { do: 'refuse', error: wireError('INVALID_STATE', `${id} is stopping and cannot be forked any more`, { details: { sandboxId: id, status } }) };
  return { do: STEPS[status as keyof typeof STEPS] };
};

/** The origin's settings, where the changes say nothing else. A fork belongs to its origin's job, and to none of its episodes. */
export const forkRequestOf = ({ id, spec }: SandboxState, capture: SnapshotId, changes: ForkChanges): SandboxRequest => {
  const job = changes.job ?? (spec.labels[PLATFORM_LABELS.job] as JobId | undefined);
  const hostname = changes.hostname ?? spec.hostname ?? undefined;
  return {
    backend: spec.backend,
    image: { snapshot: capture, sandbox: id },
    workspaces: changes.workspaces,
    toolkits: changes.toolkits,
    limits: { ...spec.limits, ...changes.limits },
    lives: { ...spec.lives, ...changes.lives },
    networkRules: changes.networkRules ?? spec.networkRules,
    initUser: changes.initUser ?? spec.initUser,
    env: changes.env ?? spec.env,
    labels: changes.labels ?? Object.fromEntries(Object.entries(spec.labels).filter(([name]) => !isPlatformLabel(name))),
    require: changes.require ?? spec.require,
    isolation: changes.isolation ?? spec.isolation,
    recordCommands: changes.recordCommands ?? spec.recordCommands,
    ...(job === undefined ? {} : { job }),
    ...(hostname === undefined ? {} : { hostname }),
  };
};

const isPlatformLabel = (name: string): boolean => (Object.values(PLATFORM_LABELS) as string[]).includes(name);
