/** What a rollout's state calls for: making its sandboxes, driving its worker, cleaning up; from the state alone. */
import type { RolloutState } from '#bus/rollout/schema.ts';
import type { Deadline } from '../kernel/definition.ts';

/**
 * `ensureWorker` makes the sandboxes and starts the worker of this attempt (`ReportRolloutReady`, `ReportWorkerEnded`). `serve`
 * answers its requests until it asks the next turn or ends (`ReportAsked`, `ReportSteps`, `ReportFinished`, `ReportWorkerEnded`).
 * `deliver` writes the open turn's answer to its stdin (`ReportDelivered`, `ReportWorkerEnded`). `cleanUp` stops what is to be
 * stopped (`ReportCleaned`). A rollout that waits for its trainer calls for nothing: that its worker died meanwhile is found when
 * the answer is delivered.
 */
export type RolloutEffect = { readonly key: string; readonly type: 'ensureWorker' | 'serve' | 'deliver' | 'cleanUp' };

export const pendingRolloutEffects = ({ status, attempt, turns, open }: RolloutState): readonly RolloutEffect[] => {
  switch (status) {
    case 'preparing':
      return [{ key: `worker:${attempt}`, type: 'ensureWorker' }];
    case 'running':
      return [{ key: `serve:${attempt}:${turns}`, type: 'serve' }];
    case 'answering':
      return [{ key: `deliver:${attempt}:${open?.turn}`, type: 'deliver' }];
    case 'ending':
      return [{ key: 'clean-up', type: 'cleanUp' }];
    case 'asking':
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
