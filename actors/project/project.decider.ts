/**
 * Decides what a project is: its place below others, who belongs to it, who may do what, how much it may use. @paper §3.2
 *
 * Whether the asker may ask at all is `authority.ts`; here stands what holds whoever asks. INV-GRANT: nobody grants an action
 * that it does not have itself. INV-DELEGATE: no child is given more than its parent has. Leases: `lease.decider.ts`.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import { bodyHashOf, ProjectName } from '#bus/ids.ts';
import { PROJECT_LIMITS } from '#bus/project/limits.ts';
import { actionsOf, principalId } from '#bus/project/policy.ts';
import type { ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import { exceeds, type QuotaAmounts } from '#bus/project/quota.ts';
import { SYSTEM_PROJECT } from '#bus/subjects.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { closeLease, confirmCharge, openLease, settleLease } from './lease.decider.ts';

type ProjectDecision = Decision<ProjectEvent>;
type Of<T extends ProjectCommand['type']> = Extract<ProjectCommand, { type: T }>;

const isSame = (a: unknown, b: unknown): boolean => bodyHashOf(a) === bodyHashOf(b);

export const decideProject = (state: ProjectState | null, command: ProjectCommand, context: DecisionContext): ProjectDecision => {
  if (command.type === 'CreateProject') return create(state, command, context);
  if (!state) return reject(wireError('PROJECT_NOT_FOUND', `there is no project ${context.address.id}; see dsec project ls`));
  const { at } = context;
  switch (command.type) {
    case 'DelegateQuota':
      return delegate(state, command, at);
    case 'SetQuota':
      return isSame(state.limits, command.limits) ? ignore('the limits are these already') : accept({ type: 'QuotaSet', at, limits: command.limits });
    case 'GrantActions':
      return grant(state, command, at);
    case 'RevokeActions':
      return revoke(state, command, at);
    case 'CreatePrincipal':
      return createPrincipal(state, command, at);
    case 'RemovePrincipal':
      return state.principals.some(({ name }) => name === command.name)
        ? accept({ type: 'PrincipalRemoved', at, name: command.name })
        : ignore('there is no such principal');
    case 'IssueCredential':
      return issue(state, command, at);
    case 'RevokeCredential': {
      const owner = state.principals.find(({ credentials }) => credentials.some(({ id }) => id === command.id));
      return owner ? accept({ type: 'CredentialRevoked', at, principal: owner.name, id: command.id }) : ignore('there is no such credential');
    }
    case 'OpenLease':
      return openLease(state, command, at);
    case 'CloseLease':
      return closeLease(state, command, at);
    case 'SettleLease':
      return settleLease(state, command, at);
    case 'ConfirmCharge':
      return confirmCharge(state, command, at);
  }
};

const create = (state: ProjectState | null, { ancestors, limits, owner }: Of<'CreateProject'>, { address, at }: DecisionContext): ProjectDecision => {
  const name = ProjectName.safeParse(address.id);
  if (!name.success || name.data === SYSTEM_PROJECT)
    return reject(wireError('INVALID_ARGUMENT', `${address.id} cannot be a project; names are lower-case letters, digits, "-" and "_", and "system" is taken`));
  if (state)
    return isSame(state.ancestors, ancestors)
      ? ignore('the project is there already')
      : reject(wireError('PROJECT_EXISTS', `the name ${address.id} is taken; project names are unique on a platform`));
  if (ancestors.length >= PROJECT_LIMITS.depth) return reject(tooMany('levels of projects', PROJECT_LIMITS.depth));
  const events: [ProjectEvent, ...ProjectEvent[]] = [{ type: 'ProjectCreated', at, name: name.data, ancestors, limits }];
  if (owner)
    events.push(
      { type: 'PrincipalCreated', at, name: owner.name, kind: owner.kind },
      { type: 'CredentialIssued', at, principal: owner.name, credential: owner.credential },
      { type: 'ActionsGranted', at, grant: { principal: principalId(name.data, owner.name), role: 'owner', actions: [] } },
    );
  return accept(...events);
};

const delegate = (state: ProjectState, { child, limits }: Of<'DelegateQuota'>, at: ProjectState['createdAt']): ProjectDecision => {
  const known = state.children.find(({ name }) => name === child);
  if (known && isSame(known.limits, limits)) return ignore('this much is delegated already');
  const above = exceeds(limits, state.limits);
  if (above) return reject(tooMuch(state, child, above, limits));
  if (!known && state.children.length >= PROJECT_LIMITS.children) return reject(tooMany(`projects below ${state.name}`, PROJECT_LIMITS.children));
  return accept({ type: 'QuotaDelegated', at, child, limits });
};

const grant = (state: ProjectState, { grant: asked, grantor }: Of<'GrantActions'>, at: ProjectState['createdAt']): ProjectDecision => {
  const actions = actionsOf(asked);
  if (actions.length === 0) return reject(wireError('INVALID_ARGUMENT', `a grant to ${asked.principal} names neither a role nor an action`));
  const missing = actions.find((action) => !grantor.actions.includes(action));
  if (missing)
    return reject(wireError('FORBIDDEN', `${grantor.principal} may not ${missing} in ${state.name}, and so cannot grant it`, { details: { action: missing } }));
  const before = state.grants.find(({ principal }) => principal === asked.principal);
  if (before && isSame(before, asked)) return ignore('this is granted already');
  const kept = before && aboveGrantor(before, grantor);
  if (kept) return reject(kept);
  if (!before && state.grants.length >= PROJECT_LIMITS.grants) return reject(tooMany(`grants of ${state.name}`, PROJECT_LIMITS.grants));
  return accept({ type: 'ActionsGranted', at, grant: asked });
};

const revoke = (state: ProjectState, { principal, grantor }: Of<'RevokeActions'>, at: ProjectState['createdAt']): ProjectDecision => {
  const before = state.grants.find((grant) => grant.principal === principal);
  if (!before) return ignore('nothing is granted');
  const above = aboveGrantor(before, grantor);
  return above ? reject(above) : accept({ type: 'ActionsRevoked', at, principal });
};

/** Who has less may not take from who has more. */
const aboveGrantor = (grant: ProjectState['grants'][number], grantor: Of<'RevokeActions'>['grantor']): WireError | undefined => {
  const above = actionsOf(grant).find((action) => !grantor.actions.includes(action));
  if (!above) return undefined;
  return wireError('FORBIDDEN', `${grant.principal} may ${above}, which ${grantor.principal} may not; somebody with that right must change the grant`);
};

const createPrincipal = (state: ProjectState, { name, kind }: Of<'CreatePrincipal'>, at: ProjectState['createdAt']): ProjectDecision => {
  const known = state.principals.find((principal) => principal.name === name);
  if (known) {
    if (known.kind === kind) return ignore('the principal is there already');
    return reject(wireError('PRINCIPAL_EXISTS', `${state.name}/${name} is a ${known.kind} already; choose another name`));
  }
  if (state.principals.length >= PROJECT_LIMITS.principals) return reject(tooMany(`principals of ${state.name}`, PROJECT_LIMITS.principals));
  return accept({ type: 'PrincipalCreated', at, name, kind });
};

const issue = (state: ProjectState, { principal, credential }: Of<'IssueCredential'>, at: ProjectState['createdAt']): ProjectDecision => {
  const known = state.principals.find(({ name }) => name === principal);
  if (!known) return reject(wireError('PRINCIPAL_NOT_FOUND', `there is no principal ${principal} in ${state.name}; see dsec principal ls`));
  if (known.credentials.some(({ id }) => id === credential.id)) return ignore('this credential has been issued already');
  if (credential.expiresAt !== null && credential.expiresAt <= at)
    return reject(wireError('INVALID_ARGUMENT', 'the credential would have expired already; give a later time'));
  const expired = known.credentials.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= at);
  if (known.credentials.length - expired.length >= PROJECT_LIMITS.credentialsPerPrincipal)
    return reject(tooMany(`credentials of ${principal}`, PROJECT_LIMITS.credentialsPerPrincipal));
  const dropped = expired.map(({ id }): ProjectEvent => ({ type: 'CredentialRevoked', at, principal, id }));
  return accept({ type: 'CredentialIssued', at, principal, credential }, ...dropped);
};

const tooMany = (what: string, limit: number): WireError =>
  wireError('LIMIT_OUT_OF_RANGE', `at most ${limit} ${what}; remove some first`, { details: { limit } });
const tooMuch = (state: ProjectState, child: string, key: keyof QuotaAmounts, limits: QuotaAmounts): WireError =>
  wireError('QUOTA_EXCEEDED', `${child} cannot be given ${key} ${limits[key]}: ${state.name} itself has ${state.limits[key]}`, {
    retry: 'never',
    details: { key, asked: limits[key], limit: state.limits[key] },
  });
