/** Runs what jobs and rollouts call for, with the hands of a client, and turns the outcome into their reports. */
import type { Shard } from '#bus/ids.ts';
import type { JobCommand, JobState } from '#bus/job/schema.ts';
import { readEvent } from '#bus/records.ts';
import type { RolloutCommand, RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { Deadline } from '#actors/kernel/definition.ts';
import type { JobEffect } from '#actors/job/job.effects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { ClientHands, Episode, EpisodeReport } from '#actors/ports/client-hands.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { RolloutEffect } from '#actors/rollout/rollout.effects.ts';
import type { EffectContext } from '../driver/driver.ts';
import { endRollouts } from './job-rollouts.ts';
import { JOBS_LIMITS } from './limits.ts';
import type { RolloutActors } from './verbs.ts';

export type JobHands = {
  readonly hands: ClientHands;
  readonly eventLog: EventLog;
  readonly shards: readonly Shard[];
  readonly rollouts: RolloutActors;
  readonly clock: Clock;
};

/** Where the log ends once the goal is durable: whoever is not in it by then, finds the goal before it starts (`member.ts`). */
export const runJobEffect = async (
  { hands, eventLog, shards, rollouts, clock }: JobHands,
  effect: JobEffect,
  { signal }: EffectContext<JobState>,
): Promise<JobCommand> => {
  const { goal, goalVersion } = effect;
  const ends = await Promise.all(shards.map(async (shard) => [shard, (await eventLog.bounds(shard)).lastSequence] as const));
  const { project, id: jobId } = effect;
  const moving = hands.moveMembers({ ...effect, jobId, asOf: Object.fromEntries(ends) }, signal);
  const [counts] = await Promise.all([moving, goal === 'ended' ? endRollouts({ rollouts, clock, project, jobId, signal }) : undefined]);
  return { type: 'ReportMembers', goal, goalVersion, counts };
};

export const jobDeadlineCommand = ({ kind, version }: Deadline): JobCommand => ({ type: 'JobDeadlinePassed', kind: kind as 'owner', version });
export const rolloutDeadlineCommand = ({ kind, version }: Deadline): RolloutCommand => ({ type: 'RolloutDeadlinePassed', kind: kind as 'life', version });

export type RolloutHands = {
  readonly hands: ClientHands;
  readonly eventLog: EventLog;
  readonly report: (address: ActorAddress, report: EpisodeReport) => Promise<RolloutState>;
  readonly whenJobRuns: (state: RolloutState, signal: AbortSignal) => Promise<void>;
};

export const runRolloutEffect = async (
  { hands, eventLog, report, whenJobRuns }: RolloutHands,
  effect: RolloutEffect,
  { address, state, signal }: EffectContext<RolloutState>,
): Promise<RolloutCommand | null> => {
  const episode: Episode = {
    state,
    signal,
    report: (made) => report(address, made),
    history: () => historyOf(eventLog, address),
    whenJobRuns: () => whenJobRuns(state, signal),
  };
  switch (effect.type) {
    case 'ensureWorker':
      return hands.makeWorker(episode);
    case 'serve':
      return hands.serveWorker(episode);
    case 'deliver':
      return hands.deliverAnswer(episode);
    case 'cleanUp':
      await hands.cleanUp(episode);
      return { type: 'ReportCleaned' };
  }
};

async function* historyOf(eventLog: EventLog, address: ActorAddress): AsyncIterable<RolloutEvent> {
  for (let after = 0; ; ) {
    const page = await eventLog.history(address, after, JOBS_LIMITS.historyPage);
    for (const { commit } of page) for (const event of commit.events) yield readEvent('rollout', event, commit.schema);
    const last = page.at(-1);
    if (!last || page.length < JOBS_LIMITS.historyPage) return;
    after = last.commit.version;
  }
}
