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

const v = 1;
const done = { decision: 'accepted' };
export const iamApi = {
  'createProject.request': { v, name: 'team', limits },
  'createProject.response': done,
  'getProject.request': { v },
  'getProject.response': {
    name: 'acme',
    parent: 'top',
    ancestors: ['top'],
    createdAt: at,
    limits,
    used: { sandboxes: 2 },
    lent: { sandboxes: 8 },
    effective: { sandboxes: 30 },
    children: ['team'],
    grants: [grant],
  },
  'listProjects.request': { v, after: 'acme' },
  'listProjects.response': { projects: [{ name: 'team', parent: 'acme', limits }], next: null },
  'setQuota.request': { v, project: 'team', limits },
  'setQuota.response': { decision: 'ignored', reason: 'the limits are these already' },
  'grant.request': { v, principal: 'acme/bot', role: 'runner', actions: ['audit.read'] },
  'grant.response': done,
  'revoke.request': { v, principal: 'acme/bot' },
  'revoke.response': done,
  'createPrincipal.request': { v, name: 'bot', kind: 'agent' },
  'createPrincipal.response': done,
  'removePrincipal.request': { v, name: 'bot' },
  'removePrincipal.response': done,
  'listPrincipals.request': { v },
  'listPrincipals.response': {
    principals: [
      {
        id: 'acme/bot',
        kind: 'agent',
        createdAt: at,
        actions: ['sandbox.read'],
        credentials: [{ id: secret.id, type: 'secret', createdAt: at, expiresAt: later }],
      },
    ],
  },
  'issueCredential.request': { v, principal: 'bot', proof: credential.proof, lifeMs: 3_600_000 },
  'issueCredential.response': { id: credential.id, expiresAt: later, inboxPrefix: `_INBOX.acme.${credential.id}` },
  'revokeCredential.request': { v, id: credential.id },
  'revokeCredential.response': done,
  'whoami.request': { v },
  'whoami.response': { principal: 'acme/bot', kind: 'agent', project: 'acme', actions: ['sandbox.read'], credential: credential.id, expiresAt: null },
  'audit.request': { v, limit: 10, since: at, until: later, after: '0:1,1@2', principal: 'acme/owner', kind: 'project' },
  'audit.response': {
    records: [
      {
        at,
        storedAt: later,
        principal: 'acme/owner',
        kind: 'project',
        actorId: 'acme',
        version: 3,
        commandId: 'acme:c-1',
        correlationId: 'acme:c-1',
        events: ['ActionsGranted'],
      },
    ],
    next: '0:2,1@2',
    more: true,
  },
};
