/**
 * The project actor: its principals and their credentials, its grants, its quota and the leases drawn from it. @paper §3.2
 * Credentials are stored as what verifies them, never as what proves them: a public key, or the hash of a random secret.
 */
import { z } from 'zod';
import { JobId, ProjectName, RequestId } from '../ids.ts';
import { TimestampMs } from '../units.ts';
import { PROJECT_LIMITS } from './limits.ts';
import { Action, PrincipalId, PrincipalKind, PrincipalName, Role } from './policy.ts';
import { QuotaAmounts, QuotaLeaseId } from './quota.ts';

export const CredentialId = z.string().regex(/^cr-[0-9a-f]{16}$/, 'a credential id looks like cr-<16 hex digits>');
export type CredentialId = z.infer<typeof CredentialId>;

/** `nkey`: proved by signing the server's nonce, so that nothing secret travels. `secret`: 256 random bits, compared by hash. */
export const CredentialProof = z.discriminatedUnion('type', [
  z.object({ type: z.literal('nkey'), publicKey: z.string().regex(/^U[A-Z2-7]{55}$/, 'not a public user nkey') }),
  z.object({ type: z.literal('secret'), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
]);
export type CredentialProof = z.infer<typeof CredentialProof>;

export const Credential = z.object({
  id: CredentialId,
  proof: CredentialProof,
  createdAt: TimestampMs,
  expiresAt: TimestampMs.nullable(),
});
export type Credential = z.infer<typeof Credential>;

export const Principal = z.object({ name: PrincipalName, kind: PrincipalKind, createdAt: TimestampMs, credentials: z.array(Credential) });
export type Principal = z.infer<typeof Principal>;

export const Grant = z.object({ principal: PrincipalId, role: Role.nullable(), actions: z.array(Action) });
export type Grant = z.infer<typeof Grant>;

/** Stream sequence per shard. */
export const Positions = z.record(z.string().regex(/^[0-9a-z]$/), z.number().int().nonnegative());
export type Positions = z.infer<typeof Positions>;

/**
 * A portion of the quota, lent to a holder. Drawn in the project and in every project above it, under the same id.
 * `closing`: nothing of it may be spent any more; what was spent is being read from the log.
 */
export const QuotaLease = z.object({
  id: QuotaLeaseId,
  /** The project whose sandboxes it pays for: this one, or one below. */
  project: ProjectName,
  /** The job of it in whose share they count. */
  job: JobId.optional(),
  holder: z.string().max(100),
  granted: QuotaAmounts,
  expiresAt: TimestampMs,
  status: z.enum(['open', 'closing']),
});
export type QuotaLease = z.infer<typeof QuotaLease>;

/** What the log says is in use by a project and those below it: of each lease that was asked about, and of all others. */
export const Usage = z.object({ asOf: Positions, byLease: z.record(QuotaLeaseId, QuotaAmounts), other: QuotaAmounts });
export type Usage = z.infer<typeof Usage>;

/** A job's share of its project's quota, and what of it is in use: a bound of its own on what is lent for the job. */
export const ShareUse = z.object({ job: JobId, limits: QuotaAmounts, usage: Usage });
export type ShareUse = z.infer<typeof ShareUse>;

const grantor = z.object({ principal: PrincipalId, actions: z.array(Action) });
const nowLease = QuotaLease.omit({ status: true });

export const ProjectCommand = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('CreateProject'),
    /** Nearest first; empty for a root. */
    ancestors: z.array(ProjectName).max(PROJECT_LIMITS.depth),
    limits: QuotaAmounts,
    /** The first principal, where there is to be one; a root's is its owner. */
    owner: z.object({ name: PrincipalName, kind: PrincipalKind, credential: Credential }).nullable(),
  }),
  /** On the parent: what one of its children may use, at most what itself may. */
  z.object({ type: z.literal('DelegateQuota'), child: ProjectName, limits: QuotaAmounts }),
  z.object({ type: z.literal('SetQuota'), limits: QuotaAmounts }),
  z.object({ type: z.literal('GrantActions'), grant: Grant, grantor }),
  z.object({ type: z.literal('RevokeActions'), principal: PrincipalId, grantor }),
  z.object({ type: z.literal('CreatePrincipal'), name: PrincipalName, kind: PrincipalKind }),
  z.object({ type: z.literal('RemovePrincipal'), name: PrincipalName }),
  z.object({ type: z.literal('IssueCredential'), principal: PrincipalName, credential: Credential }),
  z.object({ type: z.literal('RevokeCredential'), id: CredentialId }),
  z.object({ type: z.literal('OpenLease'), lease: nowLease, usage: Usage, share: ShareUse.optional() }),
  z.object({ type: z.literal('CloseLease'), id: QuotaLeaseId }),
  z.object({ type: z.literal('SettleLease'), id: QuotaLeaseId, fence: Positions }),
  /** Of a request that was committed too late for its lease, or whose placement died: is there room for it, and from now on it counts. */
  z.object({ type: z.literal('ConfirmCharge'), requestId: RequestId, lease: QuotaLeaseId, at: Positions, usage: Usage, share: ShareUse.optional() }),
]);
export type ProjectCommand = z.infer<typeof ProjectCommand>;

const at = TimestampMs;
export const ProjectEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ProjectCreated'), at, name: ProjectName, ancestors: z.array(ProjectName), limits: QuotaAmounts }),
  z.object({ type: z.literal('QuotaDelegated'), at, child: ProjectName, limits: QuotaAmounts }),
  z.object({ type: z.literal('QuotaSet'), at, limits: QuotaAmounts }),
  z.object({ type: z.literal('ActionsGranted'), at, grant: Grant }),
  z.object({ type: z.literal('ActionsRevoked'), at, principal: PrincipalId }),
  z.object({ type: z.literal('PrincipalCreated'), at, name: PrincipalName, kind: PrincipalKind }),
  z.object({ type: z.literal('PrincipalRemoved'), at, name: PrincipalName }),
  z.object({ type: z.literal('CredentialIssued'), at, principal: PrincipalName, credential: Credential }),
  z.object({ type: z.literal('CredentialRevoked'), at, principal: PrincipalName, id: CredentialId }),
  z.object({ type: z.literal('LeaseOpened'), at, lease: nowLease, used: QuotaAmounts }),
  z.object({ type: z.literal('LeaseClosing'), at, id: QuotaLeaseId }),
  z.object({ type: z.literal('LeaseSettled'), at, id: QuotaLeaseId, fence: Positions }),
  z.object({ type: z.literal('ChargeConfirmed'), at, requestId: RequestId, fence: Positions }),
]);
export type ProjectEvent = z.infer<typeof ProjectEvent>;

export const ProjectState = z.object({
  name: ProjectName,
  /** Nearest first; never changes. */
  ancestors: z.array(ProjectName),
  createdAt: TimestampMs,
  limits: QuotaAmounts,
  principals: z.array(Principal),
  grants: z.array(Grant),
  children: z.array(z.object({ name: ProjectName, limits: QuotaAmounts })),
  leases: z.array(QuotaLease),
  /** Use must be known at least up to here before more is lent: everything that was ever spent from a settled lease lies below. */
  fence: Positions,
});
export type ProjectState = z.infer<typeof ProjectState>;
