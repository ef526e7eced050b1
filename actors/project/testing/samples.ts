/** One project and every command it can get, with the values that make a difference. */
import type { JobId, ProjectName, RequestId } from '#bus/ids.ts';
import { ACTIONS, type Action, type PrincipalId, type PrincipalName, type Role } from '#bus/project/policy.ts';
import type { Credential, Positions, ProjectCommand, ShareUse, Usage } from '#bus/project/schema.ts';
import type { QuotaAmounts } from '#bus/project/quota.ts';
import { projectAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';

export const T0 = 1_700_000_000_000;
export const name = 'acme' as ProjectName;
export const address = projectAddress(name);
export const leaseId = (n: number): string => `ql-${n.toString(16).padStart(24, '0')}`;
export const LEASE_MS = 20_000;

export const credential = (n: number, expiresAt: number | null = null): Credential => ({
  id: `cr-${n.toString(16).padStart(16, '0')}`,
  proof: n % 2 === 0 ? { type: 'secret', sha256: 'ab'.repeat(32) } : { type: 'nkey', publicKey: `U${'A'.repeat(55)}` },
  createdAt: T0 as TimestampMs,
  expiresAt: expiresAt as TimestampMs | null,
});
export const root = (limits: QuotaAmounts = {}): ProjectCommand => ({
  type: 'CreateProject',
  ancestors: [],
  limits,
  owner: { name: 'owner' as PrincipalName, kind: 'user', credential: credential(1) },
});
export const below = (limits: QuotaAmounts = {}): ProjectCommand => ({ type: 'CreateProject', ancestors: ['top' as ProjectName], limits, owner: null });
export const delegate = (child: string, limits: QuotaAmounts): ProjectCommand => ({ type: 'DelegateQuota', child: child as ProjectName, limits });
export const setQuota = (limits: QuotaAmounts): ProjectCommand => ({ type: 'SetQuota', limits });
const grantorWith = (actions: readonly Action[]) => ({ principal: 'acme/owner' as PrincipalId, actions: [...actions] });
export const grant = (principal: string, role: Role | null, actions: readonly Action[] = [], mine: readonly Action[] = ACTIONS): ProjectCommand => ({
  type: 'GrantActions',
  grant: { principal: principal as PrincipalId, role, actions: [...actions] },
  grantor: grantorWith(mine),
});
export const revoke = (principal: string, mine: readonly Action[] = ACTIONS): ProjectCommand => ({
  type: 'RevokeActions',
  principal: principal as PrincipalId,
  grantor: grantorWith(mine),
});
export const principal = (who: string, kind: 'user' | 'service' | 'agent' = 'agent'): ProjectCommand => ({
  type: 'CreatePrincipal',
  name: who as PrincipalName,
  kind,
});
export const remove = (who: string): ProjectCommand => ({ type: 'RemovePrincipal', name: who as PrincipalName });
export const issue = (who: string, n: number, expiresAt: number | null = null): ProjectCommand => ({
  type: 'IssueCredential',
  principal: who as PrincipalName,
  credential: credential(n, expiresAt),
});
export const revokeCredential = (n: number): ProjectCommand => ({ type: 'RevokeCredential', id: credential(n).id });

export const sandboxes = (n: number): QuotaAmounts => ({ sandboxes: n });
export const usage = (asOf: number, used: number, byLease: Record<string, QuotaAmounts> = {}): Usage => ({
  asOf: { '0': asOf },
  byLease,
  other: sandboxes(used),
});
export const open = (n: number, granted: number, seen: Usage = usage(0, 0), project: ProjectName = name): ProjectCommand => ({
  type: 'OpenLease',
  lease: { id: leaseId(n), project, holder: 'placement-1', granted: sandboxes(granted), expiresAt: (T0 + LEASE_MS) as TimestampMs },
  usage: seen,
});
/** A lease for a job with a share of `limit`, of which `used` is in use outside of open leases. */
export const job = `jb-0-${'a'.repeat(32)}` as JobId;
export const shareOf = (limit: number, seen: Usage): ShareUse => ({ job, limits: sandboxes(limit), usage: seen });
export const openInShare = (n: number, granted: number, limit: number, seen: Usage = usage(0, 0)): ProjectCommand => ({
  type: 'OpenLease',
  lease: { id: leaseId(n), project: name, job, holder: 'placement-1', granted: sandboxes(granted), expiresAt: (T0 + LEASE_MS) as TimestampMs },
  usage: seen,
  share: shareOf(limit, seen),
});
export const close = (n: number): ProjectCommand => ({ type: 'CloseLease', id: leaseId(n) });
export const settle = (n: number, fence: Positions = { '0': 10 }): ProjectCommand => ({ type: 'SettleLease', id: leaseId(n), fence });
export const confirm = (n: number, position: number, seen: Usage, share?: ShareUse): ProjectCommand => ({
  type: 'ConfirmCharge',
  requestId: `rq-0-${'ab'.repeat(16)}` as RequestId,
  lease: leaseId(n),
  at: { '0': position },
  usage: seen,
  ...(share ? { share } : {}),
});

export const COMMANDS: readonly ProjectCommand[] = [
  root(sandboxes(10)),
  below(sandboxes(10)),
  delegate('team', sandboxes(5)),
  delegate('team', sandboxes(11)),
  setQuota(sandboxes(10)),
  setQuota(sandboxes(4)),
  grant('acme/owner', 'viewer'),
  grant('acme/bot', 'runner', [], ['sandbox.read']),
  grant('other/bot', 'runner'),
  grant('other/bot', null),
  revoke('other/bot', ['sandbox.read']),
  revoke('other/bot'),
  principal('bot'),
  principal('bot', 'user'),
  remove('bot'),
  issue('bot', 2),
  issue('bot', 4, T0 - 1),
  issue('nobody', 3),
  revokeCredential(2),
  open(1, 6),
  open(2, 6),
  open(2, 4, usage(20, 3)),
  open(3, 2, usage(20, 2), 'team' as ProjectName),
  openInShare(4, 2, 3),
  close(1),
  close(2),
  settle(1),
  settle(2),
  settle(3),
  close(4),
  settle(4),
  confirm(1, 15, usage(20, 3)),
  confirm(2, 15, usage(12, 3)),
  confirm(2, 15, usage(20, 9)),
];
export const DELAYS_MS: readonly number[] = [0, LEASE_MS];
