/** The root project: made at the first start, with an owner whose credential is the key that the platform wrote down. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProjectName } from '#bus/ids.ts';
import type { PrincipalName } from '#bus/project/policy.ts';
import type { Credential } from '#bus/project/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { toWireError } from '#bus/errors.ts';
import { IAM_LIMITS } from './limits.ts';
import type { Projects } from './projects.ts';

export type RootCredential = { readonly name: string; readonly publicKey: string };

/** Named after what it verifies, so that a repetition by another process is the same. */
export const credentialOfKey = (publicKey: string, createdAt: TimestampMs): Credential => ({
  id: `cr-${createHash('sha256').update(publicKey).digest('hex').slice(0, 16)}`,
  proof: { type: 'nkey', publicKey },
  createdAt,
  expiresAt: null,
});

/** Makes the root, or adds the platform's present key to its owner: keys that were deleted are made anew at the next start. */
export const ensureRoot = async (projects: Projects, root: { readonly project: ProjectName; readonly owner: RootCredential | null }): Promise<void> => {
  const { project, owner } = root;
  const credential = owner ? credentialOfKey(owner.publicKey, 0 as TimestampMs) : null;
  const name = owner?.name as PrincipalName;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await projects.decide(project, {
        type: 'CreateProject',
        ancestors: projects.directory.get(project)?.ancestors ?? [],
        limits: {},
        owner: credential ? { name, kind: 'user', credential } : null,
      });
      if (credential && projects.directory.get(project)?.principals.some((principal) => principal.name === name))
        await projects.decide(project, { type: 'IssueCredential', principal: name, credential });
      return;
    } catch (thrown) {
      if (toWireError(thrown).retry === 'never' || attempt >= IAM_LIMITS.rootAttempts) throw thrown;
      await delay(250);
    }
  }
};
