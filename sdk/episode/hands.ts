/**
 * Hands for the role that hosts jobs and rollouts: everything they need done in sandboxes, done as a client of the platform.
 * The program gives them to the role (`node-runtime/bin/dsec.ts`); they share the role's connection.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName, SandboxId } from '#bus/ids.ts';
import type { MemberCounts } from '#bus/job/schema.ts';
import type { RolloutCommand } from '#bus/rollout/schema.ts';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES } from '#bus/sandbox/state.ts';
import { forEachLimited, Gate } from '../concurrency.ts';
import { Session } from '../session.ts';
import { NatsBus } from '../transport/nats-bus.ts';
import { deliverAnswer } from './deliver.ts';
import { EPISODE_LIMITS } from './limits.ts';
import { type MemberOrder, moveMembers } from './members.ts';
import { type EpisodeToServe, serveWorker } from './serve.ts';
import { makeWorker } from './worker.ts';

type Report = Extract<RolloutCommand, { type: `Report${string}` }>;
const LIVING = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));

export class EpisodeHands {
  readonly #bus: NatsBus;
  readonly #sessions = new Map<ProjectName, Session>();
  /** Of a job of thousands that ends all clean up at once, and look again and again at what its stop brings about anyway. */
  readonly #cleaning = new Gate(EPISODE_LIMITS.cleanUpsInFlight);

  constructor(connection: NatsConnection) {
    this.#bus = new NatsBus(connection, undefined);
  }

  moveMembers(order: MemberOrder & { readonly project: ProjectName }, signal: AbortSignal): Promise<MemberCounts> {
    return moveMembers(this.#session(order.project), order, signal);
  }

  async makeWorker({ state, signal, whenJobRuns }: EpisodeToServe): Promise<Report> {
    await whenJobRuns();
    return makeWorker(this.#session(state.project), state, signal);
  }

  serveWorker(episode: EpisodeToServe): Promise<Report> {
    return serveWorker(this.#session(episode.state.project), episode);
  }

  async deliverAnswer({ state, signal, whenJobRuns }: EpisodeToServe): Promise<Report> {
    await whenJobRuns();
    return deliverAnswer(this.#session(state.project), state, signal);
  }

  /** Found by their label: one that was created but never reported is stopped too. Resolves when nothing of them is left. */
  async cleanUp({ state, signal }: EpisodeToServe): Promise<void> {
    if (!state.spec.keepSandboxes) await this.#cleaning.run(() => this.#stopAllOf(state, signal));
  }

  async #stopAllOf(state: EpisodeToServe['state'], signal: AbortSignal): Promise<void> {
    const session = this.#session(state.project);
    const told = new Set<SandboxId>();
    for (let pauseMs: number = EPISODE_LIMITS.membersPauseMinMs; ; pauseMs = Math.min(pauseMs * 2, EPISODE_LIMITS.membersPauseMaxMs)) {
      const request = { labels: { [PLATFORM_LABELS.rollout]: state.id }, statuses: LIVING, limit: EPISODE_LIMITS.membersPage, atLeast: session.seen };
      const { sandboxes } = await session.api.call('list', request, { signal });
      if (sandboxes.length === 0) return;
      const due = sandboxes.map((view) => view.state.id).filter((id) => !told.has(id));
      await forEachLimited(due, EPISODE_LIMITS.membersInFlight, async (id) => {
        await session.api.call('stop', { id }, { signal }).catch(unlessGone);
        told.add(id);
      });
      await session.clock.sleep(pauseMs, signal);
    }
  }

  /** The connection is the role's, which closes it. */
  async close(): Promise<void> {
    this.#sessions.clear();
  }

  #session(project: ProjectName): Session {
    const session = this.#sessions.get(project) ?? new Session(this.#bus, project);
    this.#sessions.set(project, session);
    return session;
  }
}

const unlessGone = (thrown: unknown): void => {
  if (!(thrown instanceof DsecError) || !['SANDBOX_NOT_FOUND', 'SANDBOX_ENDED'].includes(thrown.code)) throw thrown;
};
