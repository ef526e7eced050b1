/**
 * The jobs role: hosts job and rollout actors, any number of instances. @paper §6.2 §6.3
 *
 * Decides nothing itself: the actors do. Their work in sandboxes is done by the hands that the program gives it, which use the
 * platform as any client does; so what a job may do is what its project may do.
 */
import { randomBytes } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { messageIdOf } from '#bus/ids.ts';
import type { RolloutState } from '#bus/rollout/schema.ts';
import { type ActorAddress, jobAddress } from '#bus/subjects.ts';
import { jobDefinition } from '#actors/job/job.definition.ts';
import type { ClientHands, EpisodeReport } from '#actors/ports/client-hands.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { rolloutDefinition } from '#actors/rollout/rollout.definition.ts';
import type { Log } from '../../log/log.ts';
import { serveApi } from '../apiserver/apiserver.ts';
import type { Authenticate } from '../identity.ts';
import { jobDeadlineCommand, rolloutDeadlineCommand, runJobEffect, runRolloutEffect } from './effects.ts';
import { JOBS_LIMITS } from './limits.ts';
import { PausedJobs } from './paused-jobs.ts';
import { Presence } from '../presence.ts';
import { SharedActors } from './shared-actors.ts';
import { createJobVerbs, type JobActors, type RolloutActors } from './verbs.ts';

export type JobsOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly shards: readonly Shard[];
  readonly hands: ClientHands;
  readonly authenticate: Authenticate;
};

export class Jobs {
  readonly #o: JobsOptions;
  readonly #presence: Presence;
  readonly #jobs: JobActors;
  readonly #rollouts: RolloutActors;
  #listening: NodeJS.Timeout | undefined;
  #api: { close(): Promise<void> } | undefined;

  constructor(options: JobsOptions) {
    this.#o = options;
    const { connection, eventLog, clock, log, shards, hands } = options;
    const presence = () => this.#presence;
    this.#jobs = new SharedActors({
      connection,
      shards,
      presence,
      driver: {
        definition: jobDefinition,
        eventLog,
        clock,
        log,
        runEffect: (effect, context) => runJobEffect({ hands, eventLog, shards, clock, rollouts: this.#rollouts }, effect, context),
        deadlineCommand: jobDeadlineCommand,
      },
    });
    const report = (address: ActorAddress, made: EpisodeReport) => this.#report(address, made);
    const paused = new PausedJobs((address) => this.#jobs.newest(address));
    const whenJobRuns = (state: RolloutState, signal: AbortSignal) => paused.whenRunning(jobAddress(state.project, state.jobId), signal);
    this.#rollouts = new SharedActors({
      connection,
      shards,
      presence,
      driver: {
        definition: rolloutDefinition,
        eventLog,
        clock,
        log,
        runEffect: (effect, context) => runRolloutEffect({ hands, eventLog, report, whenJobRuns }, effect, context),
        deadlineCommand: rolloutDeadlineCommand,
      },
    });
    const instance = `i-${randomBytes(8).toString('hex')}`;
    this.#presence = new Presence({ connection, clock, role: 'jobs', instance, onChange: () => void this.#share() });
  }

  /** Answers at once; takes work up when it has heard who else is there. */
  start(): void {
    const { connection, log, eventLog, clock, shards, authenticate } = this.#o;
    this.#listening = setTimeout(() => void this.#begin(), JOBS_LIMITS.presenceListenMs);
    const verbs = createJobVerbs({ jobs: this.#jobs, rollouts: this.#rollouts, eventLog, clock, shards });
    this.#api = serveApi({ connection, verbs, log, authenticate, service: 'jobs' });
  }

  /** Actors whose work this instance does, by kind. */
  held(): Record<'job' | 'rollout', number> {
    return { job: this.#jobs.heldCount, rollout: this.#rollouts.heldCount };
  }

  /** Null, or why work of its jobs and rollouts may lie. */
  missed(): string | null {
    return this.#jobs.missed ?? this.#rollouts.missed;
  }

  async close(): Promise<void> {
    clearTimeout(this.#listening);
    await this.#api?.close();
    this.#presence.close();
    this.#jobs.close();
    this.#rollouts.close();
    await this.#o.hands.close();
  }

  async #begin(): Promise<void> {
    await this.#jobs.open();
    await this.#rollouts.open();
  }

  /** Another instance came or went. */
  async #share(): Promise<void> {
    await this.#jobs.catchUp();
    await this.#rollouts.catchUp();
  }

  async #report(address: ActorAddress, report: EpisodeReport): Promise<RolloutState> {
    const commandId = messageIdOf(address.project, address.id, report.type, randomBytes(8).toString('hex'));
    const meta = { commandId, correlationId: address.id, principal: 'platform', at: this.#o.clock.now() };
    const result = await this.#rollouts.submit(address, report, meta);
    if (!result.ok) throw new DsecError(result.error);
    const held = await this.#rollouts.newest(address);
    if (!held) throw DsecError.of('ROLLOUT_NOT_FOUND', `rollout ${address.id} is gone`);
    return held.state;
  }
}
