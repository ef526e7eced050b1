/** Projects, principals and rights, for whoever may: people, services and agents alike. @paper §3.2 */
import { createHash, randomBytes } from 'node:crypto';
import { nkeys } from '@nats-io/transport-node';
import type { AuditRecord, PrincipalView, ProjectView } from '#bus/api/iam.ts';
import type { FleetEdge } from '#bus/api/fleet.ts';
import type { ApiRequest, ApiResponse } from '#bus/api/schema.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import type { Action, PrincipalId, PrincipalKind, PrincipalName, Role } from '#bus/project/policy.ts';
import type { QuotaAmounts } from '#bus/project/quota.ts';
import type { Context } from './context.ts';
import type { Session } from './session.ts';

export type IssueOptions = {
  /** How long it is good for, in seconds; for ever when left out. */
  readonly lifeSeconds?: number | undefined;
  /** `nkey` (default): a key that signs, nothing secret travels. `secret`: for clients that know only passwords; only clusters take them. */
  readonly type?: 'nkey' | 'secret' | undefined;
};
/** `context` is a whole context file: what connects with it is the principal. Nobody else has its key, the platform neither. */
export type IssuedCredential = { readonly id: string; readonly expiresAt: number | null; readonly context: Context };

export type AuditRange = {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** `<project>/<name>`; the platform itself is `platform`. */
  readonly principal?: string | undefined;
  readonly kind?: AuditKind | undefined;
};
export type AuditKind = NonNullable<ApiRequest<'audit'>['kind']>;
const AUDIT_PAGE = 500;

export type Fleet = Omit<ApiResponse<'fleet'>, 'next'>;

/** Works in the project of its client. Every method is refused with FORBIDDEN where the caller has no right to it. */
export class Admin {
  readonly #session: Session;
  readonly #servers: readonly string[];

  constructor(session: Session, servers: readonly string[]) {
    this.#session = session;
    this.#servers = servers;
  }

  /** A project below this one. Repeatable. PROJECT_EXISTS when the name is taken elsewhere, QUOTA_EXCEEDED above the own quota. */
  async createProject(name: string, limits: QuotaAmounts = {}): Promise<void> {
    await this.#call('createProject', { name: name as ProjectName, limits });
  }
  getProject(): Promise<ProjectView> {
    return this.#call('getProject', {});
  }
  /** This project and all below it. */
  async *listProjects(): AsyncGenerator<ApiResponse<'listProjects'>['projects'][number]> {
    for (let after: string | null | undefined; after !== null; ) {
      const page: ApiResponse<'listProjects'> = await this.#call('listProjects', after === undefined ? {} : { after });
      yield* page.projects;
      after = page.next;
    }
  }
  /** Replaces the limits of a project below this one; of this one where it is a root. */
  async setQuota(project: string, limits: QuotaAmounts): Promise<void> {
    await this.#call('setQuota', { project: project as ProjectName, limits });
  }
  async grant(principal: string, what: { readonly role?: Role | undefined; readonly actions?: readonly Action[] | undefined }): Promise<void> {
    await this.#call('grant', { principal: principal as PrincipalId, role: what.role ?? null, actions: [...(what.actions ?? [])] });
  }
  async revoke(principal: string): Promise<void> {
    await this.#call('revoke', { principal: principal as PrincipalId });
  }
  async createPrincipal(name: string, kind: PrincipalKind): Promise<void> {
    await this.#call('createPrincipal', { name: name as PrincipalName, kind });
  }
  async removePrincipal(name: string): Promise<void> {
    await this.#call('removePrincipal', { name: name as PrincipalName });
  }
  async listPrincipals(): Promise<PrincipalView[]> {
    return (await this.#call('listPrincipals', {})).principals;
  }

  /** Makes the credential here and sends only what verifies it. */
  async issueCredential(principal: string, options: IssueOptions = {}): Promise<IssuedCredential> {
    const { proof, credentials } = options.type === 'secret' ? newSecret() : newKey();
    const lifeMs = options.lifeSeconds === undefined ? null : Math.round(options.lifeSeconds * 1_000);
    const { id, expiresAt, inboxPrefix } = await this.#call('issueCredential', { principal: principal as PrincipalName, proof, lifeMs } as Omit<
      ApiRequest<'issueCredential'>,
      'v'
    >);
    return { id, expiresAt, context: { servers: [...this.#servers], project: this.#session.project, credentials, inboxPrefix } };
  }
  async revokeCredential(id: string): Promise<void> {
    await this.#call('revokeCredential', { id });
  }
  /** Every node, what it holds and how it is, with totals and rates: for operators of the platform's first project. */
  async fleet(): Promise<Fleet> {
    const edges: FleetEdge[] = [];
    for (let after: EdgeName | undefined; ; ) {
      const page: ApiResponse<'fleet'> = await this.#session.api.call('fleet', after === undefined ? {} : { after });
      edges.push(...page.edges);
      if (page.next === null) return { at: page.at, edges, totals: page.totals, rates: page.rates, commandsStored: page.commandsStored };
      after = page.next;
    }
  }
  whoami(): Promise<ApiResponse<'whoami'>> {
    return this.#call('whoami', {});
  }
  /** Every commit of the project in the range, oldest first, as the log holds it. Bounds are milliseconds of the epoch, by the bus's clock. */
  async *audit(range: AuditRange = {}): AsyncGenerator<AuditRecord> {
    const asked = Object.fromEntries(Object.entries(range).filter(([, value]) => value !== undefined));
    for (let after: string | undefined, more = true; more; ) {
      const page: ApiResponse<'audit'> = await this.#call('audit', { limit: AUDIT_PAGE, ...asked, ...(after === undefined ? {} : { after }) });
      yield* page.records;
      ({ next: after, more } = page);
    }
  }

  #call<
    V extends
      | 'createProject'
      | 'getProject'
      | 'listProjects'
      | 'setQuota'
      | 'grant'
      | 'revoke'
      | 'createPrincipal'
      | 'removePrincipal'
      | 'listPrincipals'
      | 'issueCredential'
      | 'revokeCredential'
      | 'whoami'
      | 'audit',
  >(verb: V, request: Omit<ApiRequest<V>, 'v'>): Promise<ApiResponse<V>> {
    return this.#session.api.call(verb, request);
  }
}

const newKey = () => {
  const pair = nkeys.createUser();
  return { proof: { type: 'nkey' as const, publicKey: pair.getPublicKey() }, credentials: { nkeySeed: new TextDecoder().decode(pair.getSeed()) } };
};
const newSecret = () => {
  const token = `dsec_${randomBytes(32).toString('base64url')}`;
  return { proof: { type: 'secret' as const, sha256: createHash('sha256').update(token).digest('hex') }, credentials: { token } };
};
