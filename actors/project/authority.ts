/**
 * Who may do what: what a caller holds in a project, and what a verb asks for. @paper §3.2
 *
 * A grant holds in its project and below. INV-IAM: nobody acts beyond its grants; a credential that is issued gives nobody
 * more than the issuer has.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { Demand } from '#bus/api/actions.ts';
import type { ProjectName } from '#bus/ids.ts';
import { ACTIONS, type Action, actionsOf, type PrincipalId } from '#bus/project/policy.ts';
import type { Directory } from './directory.ts';

/** Everything that a principal may do in a project: granted there or in one above. Nothing in a project that is not known. */
export const actionsIn = (directory: Directory, principal: PrincipalId, project: ProjectName): Action[] => {
  const held = new Set((directory.chainOf(project) ?? []).flatMap(({ grants }) => grants.filter((g) => g.principal === principal).flatMap(actionsOf)));
  return ACTIONS.filter((action) => held.has(action));
};

/** Null when the demand is met. */
export const refusalOf = (
  demand: Demand,
  caller: { readonly principal: string; readonly actions: readonly Action[] },
  project: ProjectName,
  verb: string,
): WireError | null => {
  if (demand === 'anyone' || (demand === 'member' && caller.actions.length > 0)) return null;
  if (demand !== 'member' && caller.actions.includes(demand)) return null;
  const needed = demand === 'member' ? 'a right of any kind' : demand;
  return wireError('FORBIDDEN', `${caller.principal} may not ${verb} in project ${project}: it needs ${needed}; ask an owner of the project for a grant`, {
    details: { project, verb, needed },
  });
};

/** Projects in which a principal may do anything: granted, and everything below. */
export const reachOf = (directory: Directory, principal: PrincipalId): ProjectName[] =>
  directory
    .all()
    .filter(({ name }) => actionsIn(directory, principal, name).length > 0)
    .map(({ name }) => name)
    .sort();

/**
 * Whoever makes a credential for a principal can act as it: everywhere that principal may do something, the issuer must be
 * allowed to do as much.
 */
export const mayImpersonate = (directory: Directory, issuer: PrincipalId, principal: PrincipalId): WireError | null => {
  for (const project of reachOf(directory, principal)) {
    const own = actionsIn(directory, issuer, project);
    const above = actionsIn(directory, principal, project).find((action) => !own.includes(action));
    if (above)
      return wireError('FORBIDDEN', `${principal} may ${above} in ${project}, which ${issuer} may not; somebody with that right must do this`, {
        details: { project, action: above },
      });
  }
  return null;
};
