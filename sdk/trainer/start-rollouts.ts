/** Starts any number of rollouts, in calls of a bounded size. Repeatable: a rollout is named by its key within its job. */
import type { z } from 'zod';
import { ClientKey, type JobId, type RolloutId } from '#bus/ids.ts';
import type { RolloutSpec } from '#bus/rollout/schema.ts';
import { forEachLimited } from '../concurrency.ts';
import type { Session } from '../session.ts';
import { TRAINER_LIMITS } from './limits.ts';

export type RolloutOrder = { readonly key: string; readonly spec: z.input<typeof RolloutSpec> };

export const startRollouts = async (session: Session, jobId: JobId, rollouts: readonly RolloutOrder[]): Promise<RolloutId[]> => {
  const { rolloutsPerCall, startsInFlight } = TRAINER_LIMITS;
  const ids = new Array<RolloutId>(rollouts.length);
  const calls = Array.from({ length: Math.ceil(rollouts.length / rolloutsPerCall) }, (_, i) => i * rolloutsPerCall);
  await forEachLimited(calls, startsInFlight, async (from) => {
    const part = rollouts.slice(from, from + rolloutsPerCall).map(({ key, spec }) => ({ key: ClientKey.parse(key), spec }));
    const answered = await session.api.call('startRollouts', { jobId, rollouts: part });
    for (const [i, id] of answered.ids.entries()) ids[from + i] = id;
  });
  return ids;
};
