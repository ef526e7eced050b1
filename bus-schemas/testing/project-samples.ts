/** Messages of projects, as they lie on the wire. */
const at = 1_700_000_000_000;
const later = at + 60_000;
const credential = { id: `cr-${'01'.repeat(8)}`, proof: { type: 'nkey', publicKey: `U${'A'.repeat(55)}` }, createdAt: at, expiresAt: null };
const secret = { id: `cr-${'02'.repeat(8)}`, proof: { type: 'secret', sha256: 'ab'.repeat(32) }, createdAt: at, expiresAt: later };
const grant = { principal: 'acme/bot', role: 'runner', actions: ['audit.read'] };
const grantor = { principal: 'acme/owner', actions: ['sandbox.read', 'policy.grant'] };
const limits = { sandboxes: 40, memoryMiB: 65_536, 'container.sandboxes': 30 };
const leaseId = `ql-${'0c'.repeat(12)}`;
const lease = { id: leaseId, project: 'acme', holder: 'placement-1', granted: { sandboxes: 8 }, expiresAt: later };
const usage = { asOf: { '0': 10 }, byLease: { [leaseId]: { sandboxes: 3 } }, other: { sandboxes: 2 } };
const requestId = `rq-3-${'ab'.repeat(16)}`;

export const projectState = {
  name: 'acme',
  ancestors: ['top'],
  createdAt: at,
  limits,
  principals: [{ name: 'bot', kind: 'agent', createdAt: at, credentials: [credential, secret] }],
  grants: [grant],
  children: [{ name: 'team', limits: { sandboxes: 10 } }],
  leases: [{ ...lease, status: 'open' }],
  fence: { '0': 7 },
};

export const projectCommands = [
  { type: 'CreateProject', ancestors: ['top'], limits, owner: { name: 'owner', kind: 'user', credential } },
  { type: 'DelegateQuota', child: 'team', limits },
  { type: 'SetQuota', limits },
  { type: 'GrantActions', grant, grantor },
  { type: 'RevokeActions', principal: 'acme/bot', grantor },
  { type: 'CreatePrincipal', name: 'bot', kind: 'agent' },
  { type: 'RemovePrincipal', name: 'bot' },
  { type: 'IssueCredential', principal: 'bot', credential: secret },
  { type: 'RevokeCredential', id: secret.id },
  { type: 'OpenLease', lease, usage },
  { type: 'CloseLease', id: leaseId },
  { type: 'SettleLease', id: leaseId, fence: { '0': 12 } },
  { type: 'ConfirmCharge', requestId, lease: leaseId, at: { '3': 9 }, usage },
];

export const projectEvents = [
  { type: 'ProjectCreated', at, name: 'acme', ancestors: ['top'], limits },
  { type: 'QuotaDelegated', at, child: 'team', limits },
  { type: 'QuotaSet', at, limits },
  { type: 'ActionsGranted', at, grant },
  { type: 'ActionsRevoked', at, principal: 'acme/bot' },
  { type: 'PrincipalCreated', at, name: 'bot', kind: 'agent' },
  { type: 'PrincipalRemoved', at, name: 'bot' },
  { type: 'CredentialIssued', at, principal: 'bot', credential: secret },
  { type: 'CredentialRevoked', at, principal: 'bot', id: secret.id },
  { type: 'LeaseOpened', at, lease, used: { sandboxes: 5 } },
  { type: 'LeaseClosing', at, id: leaseId },
  { type: 'LeaseSettled', at, id: leaseId, fence: { '0': 12 } },
  { type: 'ChargeConfirmed', at, requestId, fence: { '3': 9 } },
];
