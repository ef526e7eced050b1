/**
 * INV-IAM: nothing runs that nobody was granted: a sandbox is admitted only where a request of the same project was assigned it
 * before, and no project holds more than its quota.
 */
import type { Assignment } from '#bus/request/schema.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

export const iamChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  /** Assigned and not yet admitted: sandbox → project. */
  const granted = new Map<string, string>();
  const held = new Map<string, number>();
  const count = (project: string, by: number): number => {
    const now = (held.get(project) ?? 0) + by;
    held.set(project, now);
    return now;
  };
  return {
    stored: ({ address }, commit) => {
      for (const event of commit?.events ?? []) {
        if (event.type === 'SandboxesAssigned') {
          for (const { sandboxId } of event['assignments'] as Assignment[]) if (isFollowed(sandboxId, oneIn)) granted.set(sandboxId, address.project);
        } else if (event.type === 'SandboxAdmitted') {
          const grantee = granted.get(address.id);
          if (isFollowed(address.id, oneIn) && grantee !== address.project)
            fail('INV-IAM', `${address.id} was admitted for ${address.project}, ${grantee ?? 'nobody'} was assigned it`);
          granted.delete(address.id);
          const quota = cluster().o.quotas?.[address.project];
          const now = count(address.project, 1);
          if (quota !== undefined && now > quota) fail('INV-IAM', `${address.project} holds ${now} sandboxes, its quota is ${quota}`);
        } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') count(address.project, -1);
      }
    },
  };
};
