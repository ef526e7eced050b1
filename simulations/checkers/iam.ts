/**
 * INV-IAM: nothing runs that nobody was granted: a sandbox is admitted only where a request of the same project was assigned it
 * before, and no project, with those below it, holds more than its quota in any dimension: summed from the log, without IAM's help.
 */
import type { EdgeEvent } from '#bus/edge/schema.ts';
import type { Assignment } from '#bus/request/schema.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

type Amounts = Record<string, number>;
/** What a project is charged for, as it was admitted. */
type Held = { readonly project: string; readonly edge: string; readonly generation: number; readonly need: Amounts };

export const iamChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  /** Assigned and not yet admitted: sandbox → project. */
  const granted = new Map<string, string>();
  const held = new Map<string, Held>();
  const sums = new Map<string, Amounts>();
  const add = ({ project, need }: Held, sign: 1 | -1): void => {
    for (const { name, limits } of payersOf(cluster().o.projects ?? [], project)) {
      const sum = sums.get(name) ?? {};
      sums.set(name, sum);
      for (const [key, amount] of Object.entries(need)) sum[key] = (sum[key] ?? 0) + sign * amount;
      for (const [key, limit] of Object.entries(limits))
        if (sign > 0 && (sum[key] ?? 0) > limit) fail('INV-IAM', `${name} holds ${key} ${sum[key]} with what ${project} just got, its quota is ${limit}`);
    }
  };
  const release = (id: string): void => {
    const one = held.get(id);
    if (one && held.delete(id)) add(one, -1);
  };
  const lost = (edge: string, generation: number): void => {
    for (const [id, one] of held) if (one.edge === edge && one.generation <= generation) release(id);
  };
  const admitted = (id: string, project: string, event: Readonly<Record<string, unknown>>): void => {
    if (isFollowed(id, oneIn)) {
      const grantee = granted.get(id);
      if (grantee !== project) fail('INV-IAM', `${id} was admitted for ${project}, ${grantee ?? 'nobody'} was assigned it`);
      granted.delete(id);
    }
    if (!cluster().o.projects) return;
    const { limits } = event['spec'] as { limits: Record<string, number | null> };
    const need = { sandboxes: 1, memoryMiB: (limits['memoryMiB'] ?? 0) + (limits['swapMiB'] ?? 0), cpuMillis: limits['cpuMillis'] ?? 0 };
    const one = { project, edge: event['edge'] as string, generation: event['generation'] as number, need };
    held.set(id, one);
    add(one, 1);
  };
  return {
    stored: ({ address }, commit) => {
      for (const event of commit?.events ?? []) {
        if (event.type === 'SandboxesAssigned') {
          for (const { sandboxId } of event['assignments'] as Assignment[]) if (isFollowed(sandboxId, oneIn)) granted.set(sandboxId, address.project);
        } else if (event.type === 'SandboxAdmitted') admitted(address.id, address.project, event);
        else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') release(address.id);
        else if (event.type === 'EdgeLost') lost(address.id, (event as unknown as Extract<EdgeEvent, { type: 'EdgeLost' }>).generation);
      }
    },
  };
};

type Plans = NonNullable<ReturnType<Parameters<MakeChecker>[0]['cluster']>['o']['projects']>;

/** The project itself and each one above it. */
export const payersOf = (plans: Plans, project: string): Plans => {
  const own = plans.find(({ name }) => name === project);
  return own ? [own, ...plans.filter(({ name }) => own.ancestors.includes(name))] : [];
};
