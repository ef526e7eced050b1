/** What a rollout's state calls for: making its sandboxes, driving its worker, cleaning up; from the state alone. */
import type { RolloutState } from '#bus/rollout/schema.ts';
import type { Deadline } from '../kernel/definition.ts';

/**
 * `ensureWorker` makes the sandboxes and starts the worker of this attempt (`ReportRolloutReady`, `ReportWorkerEnded`). `drive`
 * serves its requests until it ends (`ReportAsked`, `ReportSteps`, `ReportFinished`, `ReportWorkerEnded`); it goes on over turns.
 * `deliver` writes the open turn's answer to its stdin (`ReportDelivered`). `cleanUp` stops what is to be stopped (`ReportCleaned`).
 */
export type RolloutEffect = { readonly key: string; readonly type: 'ensureWorker' | 'drive' | 'deliver' | 'cleanUp'; readonly attempt: number };

export const pendingRolloutEffects = ({ status, attempt, open }: RolloutState): readonly RolloutEffect[] => {
  const drive: RolloutEffect = { key: `drive:${attempt}`, type: 'drive', attempt };
  switch (status) {
    case 'preparing':
      return [{ key: `worker:${attempt}`, type: 'ensureWorker', attempt }];
    case 'running':
    case 'asking':
      return [drive];
    case 'answering':
      return [drive, { key: `deliver:${attempt}:${open?.turn}`, type: 'deliver', attempt }];
    case 'ending':
      return [{ key: 'clean-up', type: 'cleanUp', attempt }];
    case 'ended':
      return [];
  }
};

export const rolloutDeadlines = (state: RolloutState): readonly Deadline[] => {
  const deadlines: Deadline[] = [];
  if (state.transitionDeadlineAt !== null) deadlines.push({ kind: 'transition', at: state.transitionDeadlineAt, version: state.transition });
  if (state.status !== 'ending' && state.status !== 'ended') deadlines.push({ kind: 'life', at: state.deadlineAt, version: 0 });
  return deadlines;
};
