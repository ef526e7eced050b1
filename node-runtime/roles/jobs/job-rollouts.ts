/**
 * Ends the rollouts of a job that ends: one that waits for a trainer would wait for ever, since nobody comes any more. Decides nothing
 * about them: each is told to stop, and cleans up as it would at any time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type JobId, messageIdOf, type ProjectName, shardOfJob } from '#bus/ids.ts';
import type { Clock } from '#actors/ports/clock.ts';
import { Semaphore } from '../semaphore.ts';
import { JOBS_LIMITS } from './limits.ts';
import type { RolloutActors } from './verbs.ts';

type Ending = { readonly rollouts: RolloutActors; readonly clock: Clock; readonly project: ProjectName; readonly jobId: JobId; readonly signal: AbortSignal };

/** Resolves when none of them lives, whoever does their work. */
export const endRollouts = async ({ rollouts, clock, project, jobId, signal }: Ending): Promise<void> => {
  const gate = new Semaphore(JOBS_LIMITS.rolloutsToldAtOnce);
  for (;;) {
    const living = (await rollouts.newestOfAll(shardOfJob(jobId), project)).filter(({ state }) => state.jobId === jobId && state.status !== 'ended');
    if (living.length === 0) return;
    await Promise.all(
      living
        .filter(({ state }) => state.status !== 'ending')
        .map(({ stored: { address } }) =>
          gate.run(async () => {
            const meta = { commandId: messageIdOf(project, address.id, 'job-ends'), correlationId: jobId, principal: 'platform', at: clock.now() };
            await rollouts.submit(address, { type: 'StopRollout' }, meta); // what comes to nothing is told again
          }),
        ),
    );
    await delay(JOBS_LIMITS.endedLookMs, undefined, { signal });
  }
};
