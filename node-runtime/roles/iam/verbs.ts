/** What each verb about projects, principals and rights does. Whether the caller may ask was decided before; here is what depends on the request. */
import { randomBytes } from 'node:crypto';
import { bodyHashOf, type ProjectName } from '#bus/ids.ts';
import type { IAM_API, PrincipalView, ProjectView } from '#bus/api/iam.ts';
import { DsecError, wireError } from '#bus/errors.ts';
import { type PrincipalId, principalId } from '#bus/project/policy.ts';
import type { ProjectCommand, ProjectState } from '#bus/project/schema.ts';
import { leftOf, plus, type QuotaAmounts, type QuotaKey } from '#bus/project/quota.ts';
import { addMs, type TimestampMs } from '#bus/units.ts';
import type { Shard } from '#bus/ids.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommitTrail } from '#actors/ports/commit-trail.ts';
import { actionsIn, mayImpersonate } from '#actors/project/authority.ts';
import { clientInboxPrefix } from '#infra/nats/config.ts';
import type { Caller, Verbs } from '../apiserver/apiserver.ts';
import { auditPage } from './audit.ts';
import type { Lending } from './lending.ts';
import type { Projects } from './projects.ts';

export type IamVerbsOptions = {
  readonly projects: Projects;
  readonly lending: Lending;
  readonly trail: CommitTrail;
  readonly shards: readonly Shard[];
  readonly clock: Clock;
};

type IamVerb = keyof typeof IAM_API;
const PAGE = 500;

export const createIamVerbs = (o: IamVerbsOptions): Verbs<IamVerb> => ({
  createProject: ({ name, limits }, caller) => createProject(o, name, limits, caller),
  getProject: async (_, { project }) => viewOf(o, project),
  listProjects: async ({ after = '' }, { project }) => {
    const all = o.projects.directory
      .subtreeOf(project)
      .filter((name) => name > after)
      .sort();
    const page = all.slice(0, PAGE);
    return { projects: page.map((name) => briefOf(stateOf(o, name))), next: all.length > PAGE ? (page.at(-1) ?? null) : null };
  },
  setQuota: ({ project, limits }, caller) => setQuota(o, project, limits, caller),
  grant: ({ principal, role, actions }, caller) => {
    known(o, principal);
    return decide(o, caller.project, { type: 'GrantActions', grant: { principal, role, actions }, grantor: grantorOf(caller) }, caller);
  },
  revoke: ({ principal }, caller) => decide(o, caller.project, { type: 'RevokeActions', principal, grantor: grantorOf(caller) }, caller),
  createPrincipal: ({ name, kind }, caller) => decide(o, caller.project, { type: 'CreatePrincipal', name, kind }, caller),
  removePrincipal: ({ name }, caller) => {
    impersonating(o, caller, principalId(caller.project, name));
    return decide(o, caller.project, { type: 'RemovePrincipal', name }, caller);
  },
  listPrincipals: async (_, { project }) => ({ principals: stateOf(o, project).principals.map((one) => principalView(o, project, one)) }),
  issueCredential: async ({ principal, proof, lifeMs }, caller) => {
    impersonating(o, caller, principalId(caller.project, principal));
    const createdAt = o.clock.now();
    const id = `cr-${bodyHashOf({ proof, project: caller.project, principal }).slice(0, 16)}`;
    const expiresAt = lifeMs === null ? null : addMs(createdAt, lifeMs);
    await decide(o, caller.project, { type: 'IssueCredential', principal, credential: { id, proof, createdAt, expiresAt } }, caller);
    return { id, expiresAt, inboxPrefix: clientInboxPrefix({ project: caller.project, name: id }) };
  },
  revokeCredential: ({ id }, caller) => {
    const owner = stateOf(o, caller.project).principals.find(({ credentials }) => credentials.some((credential) => credential.id === id));
    if (owner) impersonating(o, caller, principalId(caller.project, owner.name));
    return decide(o, caller.project, { type: 'RevokeCredential', id }, caller);
  },
  whoami: async (_, { principal, kind, project, actions, credential }) => {
    if (!credential) throw DsecError.of('NOT_SUPPORTED', 'this bus has no accounts: whoever can connect may do everything');
    return {
      principal: principal as PrincipalId,
      kind,
      project,
      actions: [...actions],
      credential: credential.id,
      expiresAt: credential.expiresAt as TimestampMs | null,
    };
  },
  audit: (asked, { project }) => auditPage(o.trail, o.shards, project, asked),
});

/** First the parent delegates, then the child begins: what stops between is finished by a repetition, and gives nobody anything. */
const createProject = async (o: IamVerbsOptions, name: ProjectName, limits: QuotaAmounts, caller: Caller) => {
  const parent = stateOf(o, caller.project);
  const ancestors = [parent.name, ...parent.ancestors];
  const there = o.projects.directory.get(name);
  if (there && bodyHashOf(there.ancestors) !== bodyHashOf(ancestors))
    throw DsecError.of('PROJECT_EXISTS', `the name ${name} is taken; project names are unique on a platform`);
  await decide(o, parent.name, { type: 'DelegateQuota', child: name, limits: there?.limits ?? limits }, caller);
  return decide(o, name, { type: 'CreateProject', ancestors, limits, owner: null }, caller);
};

/** Lowered from the bottom up and raised from the top down, a child never holds more than its parent says it may. */
const setQuota = async (o: IamVerbsOptions, name: ProjectName, limits: QuotaAmounts, caller: Caller) => {
  const state = o.projects.directory.get(name);
  if (!state || (name !== caller.project && !state.ancestors.includes(caller.project)))
    throw DsecError.of('PROJECT_NOT_FOUND', `there is no project ${name} in or below ${caller.project}; see dsec project ls`);
  const [parent] = state.ancestors;
  if (name === caller.project && parent)
    throw DsecError.of('FORBIDDEN', `the quota of ${name} is set from above: ask in project ${parent}`, { details: { project: name, parent } });
  if (parent) await decide(o, parent, { type: 'DelegateQuota', child: name, limits }, caller);
  return decide(o, name, { type: 'SetQuota', limits }, caller);
};

const decide = async (o: IamVerbsOptions, project: ProjectName, command: ProjectCommand, { principal, traceparent }: Caller) => {
  const commandId = `${project}:${command.type}:${randomBytes(8).toString('hex')}`;
  const result = await o.projects.try(project, command, { principal, commandId, traceparent });
  if (!result.ok) throw new DsecError(result.error);
  return result.decision === 'accepted' ? { decision: 'accepted' as const } : { decision: 'ignored' as const, reason: result.reason };
};

const stateOf = (o: IamVerbsOptions, project: ProjectName): ProjectState => {
  const state = o.projects.directory.get(project);
  if (!state) throw DsecError.of('PROJECT_NOT_FOUND', `there is no project ${project}; see dsec project ls`);
  return state;
};

const grantorOf = ({ principal, actions }: Caller) => ({ principal: principal as PrincipalId, actions: [...actions] });

const known = (o: IamVerbsOptions, id: PrincipalId): void => {
  const [project, name] = id.split('/');
  if (!o.projects.directory.get(project as ProjectName)?.principals.some((principal) => principal.name === name))
    throw new DsecError(wireError('PRINCIPAL_NOT_FOUND', `there is no principal ${id}; create it with dsec principal create`));
};

const impersonating = (o: IamVerbsOptions, caller: Caller, principal: PrincipalId): void => {
  if (!caller.credential) return;
  const refused = mayImpersonate(o.projects.directory, caller.principal as PrincipalId, principal);
  if (refused) throw new DsecError(refused);
};

const briefOf = ({ name, ancestors, limits }: ProjectState) => ({ name, parent: ancestors[0] ?? null, limits });

const viewOf = (o: IamVerbsOptions, project: ProjectName): ProjectView => {
  const state = stateOf(o, project);
  const { name, ancestors, createdAt, limits, grants, leases, children } = state;
  const effective: QuotaAmounts = {};
  for (const one of o.projects.directory.chainOf(project) ?? [])
    for (const [key, left] of Object.entries(leftOf(one.limits, o.lending.used(one.name))) as [QuotaKey, number][])
      effective[key] = Math.min(effective[key] ?? Number.POSITIVE_INFINITY, left);
  const lent = leases.map(({ granted }) => granted).reduce(plus, {});
  const parent = ancestors[0] ?? null;
  return { name, parent, ancestors, createdAt, limits, used: o.lending.used(project), lent, effective, children: children.map((c) => c.name), grants };
};

const principalView = (
  o: IamVerbsOptions,
  project: ProjectName,
  { name, kind, createdAt, credentials }: ProjectState['principals'][number],
): PrincipalView => ({
  id: principalId(project, name),
  kind,
  createdAt,
  actions: actionsIn(o.projects.directory, principalId(project, name), project),
  credentials: credentials.map(({ id, proof, createdAt: madeAt, expiresAt }) => ({ id, type: proof.type, createdAt: madeAt, expiresAt })),
});
