/**
 * Decides what of a project's quota is lent, and until when it counts as lent. @paper §3.2
 *
 * A lease goes `open → closing → settled`. Closing is committed before the log is read for the fence, so that whatever a
 * holder commits afterwards lies above the fence or is asked about (`ConfirmCharge`). INV-QUOTA is in `quota.ts`.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import { PROJECT_LIMITS } from '#bus/project/limits.ts';
import type { ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import type { QuotaAmounts, QuotaKey } from '#bus/project/quota.ts';
import type { TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore, reject } from '../kernel/definition.ts';
import { committedOf, freeOf, reaches, usedOf } from './quota.ts';

type ProjectDecision = Decision<ProjectEvent>;
type Of<T extends ProjectCommand['type']> = Extract<ProjectCommand, { type: T }>;

export const openLease = (state: ProjectState, { lease, usage }: Of<'OpenLease'>, at: TimestampMs): ProjectDecision => {
  const known = state.leases.find(({ id }) => id === lease.id);
  if (known) return known.status === 'open' ? ignore('this lease is open already') : reject(later('the lease is being settled'));
  if (at >= lease.expiresAt) return reject(later('the lease would be over already'));
  if (!reaches(usage.asOf, state.fence)) return reject(later('what is in use has been read to a point before the last settlement'));
  if (state.leases.length >= PROJECT_LIMITS.leases) return reject(later(`${PROJECT_LIMITS.leases} leases are open`));
  const short = shortOf(freeOf(state, usage), lease.granted);
  if (short) return reject(overQuota(state.name, short, state.limits, usedOf(usage)));
  return accept({ type: 'LeaseOpened', at, lease, used: usedOf(usage) });
};

export const closeLease = (state: ProjectState, { id }: Of<'CloseLease'>, at: TimestampMs): ProjectDecision => {
  const lease = state.leases.find((one) => one.id === id);
  return lease?.status === 'open' ? accept({ type: 'LeaseClosing', at, id }) : ignore('the lease is not open');
};

/** A project above the one that the lease pays for follows it: there is no closing of its own. */
export const settleLease = (state: ProjectState, { id, fence }: Of<'SettleLease'>, at: TimestampMs): ProjectDecision => {
  const lease = state.leases.find((one) => one.id === id);
  if (!lease) return ignore('the lease is settled');
  if (lease.project === state.name && lease.status === 'open')
    return reject(wireError('INVALID_STATE', `lease ${id} of ${state.name} must be closed before the log is read for its settlement`));
  return accept({ type: 'LeaseSettled', at, id, fence });
};

/**
 * A lease that is still in the books counts in full, so its spending does too. After the settlement the request lies above
 * the fence, perhaps unseen by whatever was lent since: it stands if there is room for it as the log is read now, and the
 * fence is moved above it. Always a commit: it decides the race against a closing by another process.
 */
export const confirmCharge = (state: ProjectState, { requestId, lease, at: position, usage }: Of<'ConfirmCharge'>, at: TimestampMs): ProjectDecision => {
  if (!reaches(usage.asOf, position) || !reaches(usage.asOf, state.fence)) return reject(later('the log has not been read as far as the request'));
  const over = state.leases.some(({ id }) => id === lease) ? undefined : overOf(state.limits, committedOf(state, usage));
  if (over) return reject(overQuota(state.name, over, state.limits, usedOf(usage)));
  return accept({ type: 'ChargeConfirmed', at, requestId, fence: position });
};

const shortOf = (free: QuotaAmounts, granted: QuotaAmounts): QuotaKey | undefined =>
  (Object.keys(free) as QuotaKey[]).find((key) => (granted[key] ?? 0) > (free[key] ?? 0));
const overOf = (limits: QuotaAmounts, committed: QuotaAmounts): QuotaKey | undefined =>
  (Object.keys(limits) as QuotaKey[]).find((key) => (committed[key] ?? 0) > (limits[key] ?? 0));

const later = (why: string): WireError => wireError('OVERLOADED', `${why}; ask again`);

/** Names the project whose limit it is: it may be one above the asker's. */
export const overQuota = (project: string, key: QuotaKey, limits: QuotaAmounts, used: QuotaAmounts): WireError =>
  wireError('QUOTA_EXCEEDED', `project ${project} may use ${key} ${limits[key]} and uses ${used[key] ?? 0}; end some sandboxes or have its quota raised`, {
    details: { project, key, limit: limits[key], used: used[key] ?? 0 },
  });
