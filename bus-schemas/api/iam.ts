/** Verbs about projects, principals and rights: answered by the iam role. The same for people, services and agents. @paper §3.2 */
import { z } from 'zod';
import { ProjectName } from '../ids.ts';
import { Action, PrincipalId, PrincipalKind, PrincipalName, Role } from '../project/policy.ts';
import { CredentialId, Grant } from '../project/schema.ts';
import { QuotaAmounts } from '../project/quota.ts';
import { ACTOR_KINDS } from '../subjects.ts';
import { DurationMs, TimestampMs } from '../units.ts';

const v = z.literal(1);
const done = z.object({ decision: z.enum(['accepted', 'ignored']), reason: z.string().optional() });

/** `effective`: what is left of each limited amount, over this project and all above it; absent amounts are not limited. */
export const ProjectView = z.object({
  name: ProjectName,
  parent: ProjectName.nullable(),
  ancestors: z.array(ProjectName),
  createdAt: TimestampMs,
  limits: QuotaAmounts,
  used: QuotaAmounts,
  /** Lent to placements; what of it is spent counts in `used` as well. */
  lent: QuotaAmounts,
  effective: QuotaAmounts,
  children: z.array(ProjectName),
  grants: z.array(Grant),
});
export type ProjectView = z.infer<typeof ProjectView>;

export const CredentialView = z.object({
  id: CredentialId,
  type: z.enum(['nkey', 'secret']),
  createdAt: TimestampMs,
  expiresAt: TimestampMs.nullable(),
});
export const PrincipalView = z.object({
  id: PrincipalId,
  kind: PrincipalKind,
  createdAt: TimestampMs,
  /** What it may do in the project that was asked about. */
  actions: z.array(Action),
  credentials: z.array(CredentialView),
});
export type PrincipalView = z.infer<typeof PrincipalView>;

/** One commit: `at` by the clock of whoever decided, `storedAt` by the bus's. */
export const AuditRecord = z.object({
  at: TimestampMs,
  storedAt: TimestampMs,
  principal: z.string(),
  kind: z.string(),
  actorId: z.string(),
  version: z.number().int(),
  commandId: z.string(),
  correlationId: z.string(),
  events: z.array(z.string()),
});
export type AuditRecord = z.infer<typeof AuditRecord>;

export const IAM_API = {
  /** Below the project that is asked. Its quota is at most the parent's; without `limits` only those above bound it. */
  createProject: { request: z.strictObject({ v, name: ProjectName, limits: QuotaAmounts.default({}) }), response: done },
  getProject: { request: z.strictObject({ v }), response: ProjectView },
  /** This project and all below it, by name; at most 500 a page. */
  listProjects: {
    request: z.strictObject({ v, after: z.string().optional() }),
    response: z.object({
      projects: z.array(z.object({ name: ProjectName, parent: ProjectName.nullable(), limits: QuotaAmounts })),
      next: z.string().nullable(),
    }),
  },
  /** Replaces the limits of a project below the one that is asked; a root sets its own. */
  setQuota: { request: z.strictObject({ v, project: ProjectName, limits: QuotaAmounts }), response: done },
  grant: {
    request: z.strictObject({ v, principal: PrincipalId, role: Role.nullable().default(null), actions: z.array(Action).default([]) }),
    response: done,
  },
  /** Takes away everything that the project grants to the principal; what projects above grant stays. */
  revoke: { request: z.strictObject({ v, principal: PrincipalId }), response: done },
  createPrincipal: { request: z.strictObject({ v, name: PrincipalName, kind: PrincipalKind }), response: done },
  removePrincipal: { request: z.strictObject({ v, name: PrincipalName }), response: done },
  listPrincipals: { request: z.strictObject({ v }), response: z.object({ principals: z.array(PrincipalView) }) },
  /**
   * The credential is made by whoever asks: only what verifies it is sent. `nkey`: a public user key. `secret`: the SHA-256
   * of a random secret.
   */
  issueCredential: {
    request: z.strictObject({
      v,
      principal: PrincipalName,
      proof: z.discriminatedUnion('type', [
        z.strictObject({ type: z.literal('nkey'), publicKey: z.string().regex(/^U[A-Z2-7]{55}$/, 'not a public user nkey') }),
        z.strictObject({ type: z.literal('secret'), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
      ]),
      lifeMs: DurationMs.min(1_000)
        .max(366 * 24 * 3_600_000)
        .nullable()
        .default(null),
    }),
    response: z.object({ id: CredentialId, expiresAt: TimestampMs.nullable(), inboxPrefix: z.string() }),
  },
  revokeCredential: { request: z.strictObject({ v, id: CredentialId }), response: done },
  whoami: {
    request: z.strictObject({ v }),
    response: z.object({
      principal: PrincipalId,
      kind: PrincipalKind,
      project: ProjectName,
      actions: z.array(Action),
      credential: CredentialId,
      expiresAt: TimestampMs.nullable(),
    }),
  },
  /**
   * Who did what in the project: every commit of its actors from `since` to `until` (by `storedAt`), oldest first. A page holds at most
   * `limit`, perhaps none; `after` the `next` of a page goes on behind it, also later, when it said that there was no more.
   */
  audit: {
    request: z.strictObject({
      v,
      limit: z.number().int().min(1).max(500).default(100),
      since: TimestampMs.optional(),
      until: TimestampMs.optional(),
      after: z.string().max(1_000).optional(),
      principal: z.string().max(200).optional(),
      kind: z.enum(ACTOR_KINDS).optional(),
    }),
    response: z.object({ records: z.array(AuditRecord), next: z.string(), more: z.boolean() }),
  },
} as const;
