/**
 * Brings every member of a job to a goal: asks the nodes, looks again, until all are there or the time is over.
 *
 * A member that came to its goal and was woken by somebody's request since counts as having been there. @paper §6.3
 */
import { DsecError } from '#bus/errors.ts';
import type { JobId, SandboxId } from '#bus/ids.ts';
import type { MemberCounts, MemberGoal } from '#bus/job/schema.ts';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import type { TimestampMs } from '#bus/units.ts';
import { forEachLimited } from '../concurrency.ts';
import type { Session } from '../session.ts';
import { EPISODE_LIMITS } from './limits.ts';

export type MemberOrder = {
  readonly jobId: JobId;
  readonly goal: MemberGoal;
  readonly deadlineAt: TimestampMs;
  /** Stream sequence per shard up to which members are looked for, at least. */
  readonly asOf: Readonly<Record<string, number>>;
};

const VERBS = { paused: 'pause', running: 'resume', ended: 'stop' } as const;
/** Statuses in which a member can be told to go there; in the others it is on its way somewhere, and is looked at again. */
const MAY_BE_TOLD: Readonly<Record<MemberGoal, (status: SandboxStatus) => boolean>> = {
  paused: (status) => status === 'running',
  running: (status) => status === 'paused',
  ended: (status) => status !== 'stopping',
};
const LIVING = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));

export const moveMembers = async (session: Session, order: MemberOrder, signal: AbortSignal): Promise<MemberCounts> => {
  const [seen, there, failed] = [new Set<SandboxId>(), new Set<SandboxId>(), new Set<SandboxId>()];
  const { goal, deadlineAt } = order;
  for (let pauseMs: number = EPISODE_LIMITS.membersPauseMinMs; ; pauseMs = Math.min(pauseMs * 2, EPISODE_LIMITS.membersPauseMaxMs)) {
    let left = 0;
    const due: SandboxId[] = [];
    for await (const { id, status } of livingMembers(session, order, signal)) {
      seen.add(id);
      if (status === goal) there.add(id);
      if (there.has(id) || failed.has(id)) continue;
      left += 1;
      if (MAY_BE_TOLD[goal](status)) due.push(id);
    }
    if (session.clock.now() >= deadlineAt || left === 0) return { reached: seen.size - failed.size - left, failed: failed.size, left };
    await forEachLimited(due, EPISODE_LIMITS.membersInFlight, async (id) => {
      if (!(await mayGetThere(session, id, goal, signal))) failed.add(id);
    });
    await session.clock.sleep(pauseMs, signal);
  }
};

/** Tells one member. False when no other try would help; a state that has changed meanwhile shows with the next look. */
const mayGetThere = async (session: Session, id: SandboxId, goal: MemberGoal, signal: AbortSignal): Promise<boolean> => {
  try {
    await session.api.call(VERBS[goal], { id }, { signal });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.code === 'CANCELLED') throw thrown;
    return thrown.retry !== 'never' || thrown.code === 'INVALID_STATE' || thrown.code === 'SANDBOX_ENDED';
  }
};

async function* livingMembers(session: Session, { jobId, asOf }: MemberOrder, signal: AbortSignal): AsyncGenerator<SandboxState> {
  const request = { labels: { [PLATFORM_LABELS.job]: jobId }, statuses: LIVING, limit: EPISODE_LIMITS.membersPage, atLeast: asOf };
  for (let after: string | null | undefined; after !== null; ) {
    const page = await session.api.call('list', after === undefined ? request : { ...request, after }, { signal });
    for (const { state } of page.sandboxes) yield state;
    after = page.next;
  }
}
