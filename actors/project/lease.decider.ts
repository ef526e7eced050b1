/**
 * Decides what of a project's quota is lent, and until when it counts as lent. @paper §3.2
 *
 * A lease goes `open → closing → settled`. Closing is committed before the log is read for the fence, so that whatever a
 * holder commits afterwards lies above the fence or is asked about (`ConfirmCharge`). INV-QUOTA is in `quota.ts`.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import { PROJECT_LIMITS } from '#bus/project/limits.ts';
import type { Positions, ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import type { QuotaAmounts, QuotaKey } from '#bus/project/quota.ts';
import type { TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore, reject } from '../kernel/definition.ts';
import { committedOf, freeOf, projectNode, type QuotaNode, reaches, shareNode, usedOf } from './quota.ts';

type ProjectDecision = Decision<ProjectEvent>;
type Of<T extends ProjectCommand['type']> = Extract<ProjectCommand, { type: T }>;

/** What bounds this: the project, and a job's share of it where one is named. */
const nodesOf = (state: ProjectState, { usage, share }: Pick<Of<'OpenLease'>, 'usage' | 'share'>): readonly QuotaNode[] =>
  share ? [shareNode(state, share), projectNode(state, usage)] : [projectNode(state, usage)];
const isReadTo = (nodes: readonly QuotaNode[], positions: Positions): boolean => nodes.every(({ usage }) => reaches(usage.asOf, positions));

export const openLease = (state: ProjectState, command: Of<'OpenLease'>, at: TimestampMs): ProjectDecision => {
  const { lease, usage } = command;
  const known = state.leases.find(({ id }) => id === lease.id);
  if (known) return known.status === 'open' ? ignore('this lease is open already') : reject(later('the lease is being settled'));
  if (at >= lease.expiresAt) return reject(later('the lease would be over already'));
  const nodes = nodesOf(state, command);
  if (!isReadTo(nodes, state.fence)) return reject(later('what is in use has been read to a point before the last settlement'));
  if (state.leases.length >= PROJECT_LIMITS.leases) return reject(later(`${PROJECT_LIMITS.leases} leases are open`));
  for (const node of nodes) {
    const short = shortOf(freeOf(node), lease.granted);
    if (short) return reject(overQuota(node, short));
  }
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
export const confirmCharge = (state: ProjectState, command: Of<'ConfirmCharge'>, at: TimestampMs): ProjectDecision => {
  const { requestId, lease, at: position } = command;
  const nodes = nodesOf(state, command);
  if (!isReadTo(nodes, position) || !isReadTo(nodes, state.fence)) return reject(later('the log has not been read as far as the request'));
  for (const node of state.leases.some(({ id }) => id === lease) ? [] : nodes) {
    const over = overOf(node.limits, committedOf(node, node.usage));
    if (over) return reject(overQuota(node, over));
  }
  return accept({ type: 'ChargeConfirmed', at, requestId, fence: position });
};

const shortOf = (free: QuotaAmounts, granted: QuotaAmounts): QuotaKey | undefined =>
  (Object.keys(free) as QuotaKey[]).find((key) => (granted[key] ?? 0) > (free[key] ?? 0));
const overOf = (limits: QuotaAmounts, committed: QuotaAmounts): QuotaKey | undefined =>
  (Object.keys(limits) as QuotaKey[]).find((key) => (committed[key] ?? 0) > (limits[key] ?? 0));

const later = (why: string): WireError => wireError('OVERLOADED', `${why}; ask again`);

/** Names whose limit it is: a job's share, or a project that may be one above the asker's. */
export const overQuota = ({ whose, limits, usage }: QuotaNode, key: QuotaKey, taken = usedOf(usage)): WireError => {
  const [limit, used] = [limits[key], taken[key] ?? 0];
  const then = 'job' in whose ? 'end some of its sandboxes, or create a job with a larger share' : 'end some sandboxes or have its quota raised';
  return wireError('QUOTA_EXCEEDED', `${nameOf({ whose })} may use ${key} ${limit} and uses ${used}; ${then}`, { details: { ...whose, key, limit, used } });
};

export const nameOf = ({ whose }: Pick<QuotaNode, 'whose'>): string => ('job' in whose ? `the share of job ${whose.job}` : `project ${whose.project}`);
