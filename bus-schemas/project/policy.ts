/**
 * Who may do what: actions, the roles that stand for sets of them, and what each verb and operation asks for. @paper §3.2
 *
 * A grant holds in its project and in every project below it. The same vocabulary for people, services and agents.
 */
import { z } from 'zod';
import { NAME_PATTERN, type ProjectName } from '../ids.ts';
import { ID_LIMITS } from '../limits.ts';

export const ACTIONS = [
  'sandbox.read',
  'sandbox.create',
  'sandbox.control',
  'sandbox.exec',
  'project.read',
  'project.create',
  'project.quota',
  'policy.grant',
  'principal.manage',
  'audit.read',
  'fleet.read',
] as const;
export const Action = z.enum(ACTIONS);
export type Action = z.infer<typeof Action>;

export const Role = z.enum(['owner', 'operator', 'runner', 'viewer']);
export type Role = z.infer<typeof Role>;

const VIEWER: readonly Action[] = ['sandbox.read', 'project.read'];
const RUNNER: readonly Action[] = [...VIEWER, 'sandbox.create', 'sandbox.control', 'sandbox.exec'];
export const ROLE_ACTIONS: Readonly<Record<Role, readonly Action[]>> = {
  viewer: VIEWER,
  runner: RUNNER,
  operator: [...RUNNER, 'project.create', 'project.quota', 'audit.read', 'fleet.read'],
  owner: ACTIONS,
};

/** People, services and agents differ in name only: what they may do, grants say. */
export const PrincipalKind = z.enum(['user', 'service', 'agent']);
export type PrincipalKind = z.infer<typeof PrincipalKind>;

export const PrincipalName = z
  .string()
  .max(ID_LIMITS.nameLength)
  .regex(NAME_PATTERN, `a principal's name must match ${NAME_PATTERN.source}`)
  .brand<'PrincipalName'>();
export type PrincipalName = z.infer<typeof PrincipalName>;

/** `<project>/<name>`: a principal belongs to one project and may hold grants in others. */
export const PrincipalId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]*\/[a-z0-9][a-z0-9_-]*$/, 'a principal looks like <project>/<name>')
  .max(2 * ID_LIMITS.nameLength + 1)
  .brand<'PrincipalId'>();
export type PrincipalId = z.infer<typeof PrincipalId>;

export const principalId = (project: ProjectName, name: PrincipalName): PrincipalId => `${project}/${name}` as PrincipalId;
export const parsePrincipalId = (id: PrincipalId): { project: ProjectName; name: PrincipalName } => {
  const [project, name] = id.split('/');
  return { project: project as ProjectName, name: name as PrincipalName };
};

/** What a role and single actions amount to, in the order of the vocabulary. */
export const actionsOf = ({ role, actions }: { readonly role: Role | null; readonly actions: readonly Action[] }): Action[] => {
  const all = new Set<Action>([...(role ? ROLE_ACTIONS[role] : []), ...actions]);
  return ACTIONS.filter((action) => all.has(action));
};
