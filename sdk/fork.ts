/**
 * Forks: sandboxes that begin where a live one is. The origin stands still once, for the capture that all its forks share; then they
 * are made like any group, each with an identity, limits and lives of its own. One call of the control plane does both. @paper §6.1
 */
import type { ApiRequest } from '#bus/api/schema.ts';
import { DsecError } from '#bus/errors.ts';
import type { ClientKey, SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { Ask } from './create/create-waiter.ts';
import type { GroupOptions } from './create/run.ts';
import type { Group } from './group.ts';
import { orderOf, type RunOptions, type WaitOptions } from './run-options.ts';
import type { Session } from './session.ts';

/** What a fork does not take over from its origin. With a `key`, repeating the call never makes further forks. */
export type ForkOptions = Partial<Omit<RunOptions, 'image' | 'backend'>> & WaitOptions & Pick<GroupOptions, 'onItem'>;

/** INVALID_ARGUMENT, and what the platform refuses the whole call with; what became of each fork is in the group. */
export const forkSandbox = (session: Session, id: SandboxId, count: number, options: ForkOptions): Promise<Group> => {
  const { timeoutMs, signal, onItem, ...own } = options;
  const { changes, key } = checked(count, own);
  const askWith =
    (named: ClientKey): Ask =>
    async ({ timeoutMs: patience, ...call }) => {
      const giveUpAt = session.clock.now() + (call.giveUpAfterMs ?? patience);
      for (;;) {
        const giveUpAfterMs = Math.max(1, giveUpAt - session.clock.now());
        const { decision, ...answer } = await session.api.call('fork', { id, key: named, count, changes, timeoutMs: patience }, { ...call, giveUpAfterMs });
        if (decision === 'accepted') return answer;
        if (session.clock.now() >= giveUpAt) throw stillCaptured(id, named, patience);
      }
    };
  return session.makeForks({ key, count, askWith }, { timeoutMs, signal, onItem });
};

type Changes = NonNullable<ApiRequest<'fork'>['changes']>;

const checked = (count: number, own: object): { changes: Changes; key: ReturnType<typeof orderOf>['key'] } => {
  if (!Number.isInteger(count) || count < 1 || count > WIRE_LIMITS.maxCreatesPerMessage)
    throw DsecError.of('INVALID_ARGUMENT', `count: must be a whole number from 1 to ${WIRE_LIMITS.maxCreatesPerMessage}`, { details: { fields: ['count'] } });
  const fixed = ['image', 'backend'].find((field) => (own as Record<string, unknown>)[field] !== undefined);
  if (fixed) throw DsecError.of('INVALID_ARGUMENT', `${fixed}: a fork has that of its origin; leave it out`, { details: { fields: [fixed] } });
  const { spec, key } = orderOf({ ...own, image: 'fork' });
  const { image: _, backend: __, ...changes } = spec;
  return { changes, key };
};

const stillCaptured = (id: SandboxId, key: string, timeoutMs: number): DsecError =>
  DsecError.of('DEADLINE_EXCEEDED', `sandbox ${id} was not captured within ${timeoutMs} ms; the same call with key "${key}" goes on waiting for it`, {
    retry: 'same',
    details: { sandboxId: id, key },
  });
