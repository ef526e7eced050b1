/** Rights: what a grant reaches, what a verb asks for, and whose name one may lend. */
import { describe, expect, test } from 'vitest';
import { VERB_DEMANDS } from '#bus/api/actions.ts';
import { API } from '#bus/api/schema.ts';
import type { ProjectName } from '#bus/ids.ts';
import { ROLE_ACTIONS, type PrincipalId, type Role } from '#bus/project/policy.ts';
import { ProjectState } from '#bus/project/schema.ts';
import { actionsIn, mayImpersonate, reachOf, refusalOf } from './authority.ts';
import { Directory } from './directory.ts';

const [top, team, squad, other] = ['top', 'team', 'squad', 'other'] as ProjectName[] as [ProjectName, ProjectName, ProjectName, ProjectName];
const [ann, bob, eve] = ['top/ann', 'team/bob', 'other/eve'] as PrincipalId[] as [PrincipalId, PrincipalId, PrincipalId];
const project = (name: ProjectName, ancestors: ProjectName[], grants: [PrincipalId, Role][]) =>
  ProjectState.parse({
    name,
    ancestors,
    createdAt: 0,
    limits: {},
    principals: [],
    grants: grants.map(([principal, role]) => ({ principal, role, actions: [] })),
    children: [],
    leases: [],
    fence: {},
  });
const directory = new Directory();
for (const state of [
  project(top, [], [[ann, 'viewer']]),
  project(
    team,
    [top],
    [
      [bob, 'operator'],
      [eve, 'viewer'],
    ],
  ),
  project(squad, [team, top], [[ann, 'runner']]),
  project(other, [], [[eve, 'owner']]),
])
  directory.learn(state, 1);

describe('authority', () => {
  test('a grant holds where it was made and below, never above or beside', () => {
    expect(actionsIn(directory, bob, squad)).toEqual(actionsIn(directory, bob, team));
    expect(actionsIn(directory, bob, top)).toEqual([]);
    expect(actionsIn(directory, bob, other)).toEqual([]);
    expect(actionsIn(directory, ann, squad)).toEqual(expect.arrayContaining([...ROLE_ACTIONS.runner]));
    expect(reachOf(directory, eve)).toEqual(['other', 'squad', 'team']);
    expect(actionsIn(directory, bob, 'nowhere' as ProjectName)).toEqual([]);
  });

  test('every verb asks for something, and an owner may do all', () => {
    expect(Object.keys(VERB_DEMANDS).sort()).toEqual(Object.keys(API).sort());
    for (const [verb, demand] of Object.entries(VERB_DEMANDS)) {
      expect(refusalOf(demand, { principal: eve, actions: actionsIn(directory, eve, other) }, other, verb)).toBeNull();
      if (demand !== 'anyone') expect(refusalOf(demand, { principal: bob, actions: [] }, other, verb)).toMatchObject({ code: 'FORBIDDEN' });
    }
  });

  test('nobody acts through somebody who may do more, anywhere', () => {
    expect(mayImpersonate(directory, bob, ann)).toMatchObject({ code: 'FORBIDDEN', details: { project: 'top' } });
    expect(mayImpersonate(directory, bob, eve)).toMatchObject({ code: 'FORBIDDEN', details: { project: 'other' } });
    expect(mayImpersonate(directory, eve, eve)).toBeNull();
  });

  test('an older state does not replace a newer one, and a credential that is gone proves nothing', () => {
    const proof = { type: 'nkey' as const, publicKey: `U${'A'.repeat(55)}` };
    const credentials = [{ id: `cr-${'0'.repeat(16)}`, proof, createdAt: 0, expiresAt: null }];
    const own = new Directory();
    const withKey = ProjectState.parse({ ...project(top, [], []), principals: [{ name: 'ann', kind: 'user', createdAt: 0, credentials }] });
    expect(own.learn(withKey, 2)).toBe(true);
    expect(own.holderOf(proof.publicKey)?.principal).toBe('top/ann');
    expect(own.learn(project(top, [], []), 1)).toBe(false);
    expect(own.learn(project(top, [], []), 3)).toBe(true);
    expect(own.holderOf(proof.publicKey)).toBeUndefined();
  });
});
