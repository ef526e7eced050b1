/** An episode as records, one JSON object per line: what was asked and answered, done and found, and how it ended. @paper §6.2 */
import type { RolloutId } from '#bus/ids.ts';
import type { RolloutEvent } from '#bus/rollout/schema.ts';
import type { Session } from '../session.ts';
import { TRAINER_LIMITS } from './limits.ts';

/** `version` and `at` name the commit: equal for what was made durable together. */
export type TrajectoryRecord = { readonly version: number; readonly at: number } & RolloutEvent;

export async function* trajectoryOf(session: Session, id: RolloutId): AsyncGenerator<TrajectoryRecord> {
  for (let after = 0, more = true; more; ) {
    const page = await session.api.call('rolloutEvents', { id, afterVersion: after, limit: TRAINER_LIMITS.eventsPage });
    for (const { version, at, events } of page.commits) {
      after = version;
      for (const event of events) yield { version, ...event, at };
    }
    more = page.more;
  }
}
