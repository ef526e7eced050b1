/**
 * What jobs and rollouts need done in sandboxes, by somebody who uses the platform as any client does. The role that hosts those
 * actors decides and remembers; the hands create, execute, read and stop. The program gives the role its hands (`bin/dsec.ts`).
 *
 * Every method may be repeated, may be interrupted half-way, and may run twice at once for a moment when the actors move to another
 * instance: creates and commands carry keys, streams are addressed by byte. A thrown error means "try again later"; what is final
 * comes back as a report. @paper §6.2
 */
import type { JobId, ProjectName } from '#bus/ids.ts';
import type { MemberCounts, MemberGoal } from '#bus/job/schema.ts';
import type { RolloutCommand, RolloutEvent, RolloutState } from '#bus/rollout/schema.ts';
import type { Positions } from '#bus/project/schema.ts';
import type { TimestampMs } from '#bus/units.ts';

export type MemberOrder = {
  readonly project: ProjectName;
  readonly jobId: JobId;
  readonly goal: MemberGoal;
  readonly deadlineAt: TimestampMs;
  /** Members are looked for in what the log held at least up to here. */
  readonly asOf: Positions;
};
export type EpisodeReport = Extract<RolloutCommand, { type: `Report${string}` }>;

export type Episode = {
  readonly state: RolloutState;
  /** Decides a report at once and answers with the state that it led to: progress in the middle of a long step. */
  readonly report: (report: EpisodeReport) => Promise<RolloutState>;
  /** The episode's events, oldest first. */
  readonly history: () => AsyncIterable<RolloutEvent>;
  /** Resolves when the job is not paused: an episode of a paused job takes no step. Rejects when the signal aborts. */
  readonly whenJobRuns: () => Promise<void>;
  readonly signal: AbortSignal;
};

export interface ClientHands {
  /** Brings every living member of a job to a goal; resolves when all are there, or with what is left at the deadline. */
  moveMembers(order: MemberOrder, signal: AbortSignal): Promise<MemberCounts>;
  /** Makes what the episode still lacks of sandboxes, and starts its worker. */
  makeWorker(episode: Episode): Promise<EpisodeReport>;
  /** Serves the worker's requests from where the state stands until it asks a new turn or ends. */
  serveWorker(episode: Episode): Promise<EpisodeReport>;
  /** Gives the worker the answer to its open turn. */
  deliverAnswer(episode: Episode): Promise<EpisodeReport>;
  /** Stops the episode's sandboxes, unless they are to be kept. */
  cleanUp(episode: Episode): Promise<void>;
  close(): Promise<void>;
}
