/**
 * Brings every member of a job to a goal, as `sdk/episode/members.ts`: asks the nodes, looks again, until all are there or the time is
 * over. Whoever is not in the log by then finds the goal before it starts. What is there is read from the log, as production's projection has it: what was lost with its Edge has ended.
 */
import { withLoss } from '#bus/edge/loss.ts';
import type { EdgeState } from '#bus/edge/schema.ts';
import type { Shard } from '#bus/ids.ts';
import type { MemberCounts, MemberGoal } from '#bus/job/schema.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { ENDED_STATUSES, type SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import { SYSTEM_PROJECT, SYSTEM_SHARD } from '#bus/subjects.ts';
import type { JobEffect } from '#actors/job/job.effects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Answer } from '../ports/event-log.ts';
import type { ApiAnswer } from './apiserver.ts';
import type { SimClient } from './client.ts';
import { type Flow, together, until } from './flow.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

const COMMANDS: Readonly<Record<MemberGoal, SandboxBusCommand>> = {
  paused: { type: 'PauseSandbox' },
  running: { type: 'ResumeSandbox' },
  ended: { type: 'StopSandbox', reason: 'requested' },
};
/** Statuses in which a member can be told to go there; in the others it is on its way somewhere, and is looked at again. */
const MAY_BE_TOLD: Readonly<Record<MemberGoal, (status: SandboxStatus) => boolean>> = {
  paused: (status) => status === 'running',
  running: (status) => status === 'paused',
  ended: (status) => status !== 'stopping',
};

const EDGES = { shard: SYSTEM_SHARD, project: SYSTEM_PROJECT, kind: 'edge', home: '_' } as const;

export class Members {
  readonly #process: Process;
  readonly #client: SimClient;
  readonly #shards: readonly Shard[];

  constructor(process: Process, client: SimClient, shards: readonly Shard[]) {
    this.#process = process;
    this.#client = client;
    this.#shards = shards;
  }

  /** Null: the log did not answer, or nobody wants it any more. */
  *move(effect: JobEffect, isStopped: () => boolean): Flow<MemberCounts | null> {
    const { goal, deadlineAt } = effect;
    const [seen, there, failed] = [new Set<string>(), new Set<string>(), new Set<string>()];
    let pauseMs: number = HOST_LIMITS.membersPauseMinMs;
    for (;;) {
      const living = yield* this.#living(effect);
      if (!living || isStopped()) return null;
      let left = 0;
      const due: SandboxState[] = [];
      for (const member of living) {
        seen.add(member.id);
        if (member.status === goal) there.add(member.id);
        if (there.has(member.id) || failed.has(member.id)) continue;
        left += 1;
        if (MAY_BE_TOLD[goal](member.status)) due.push(member);
      }
      if (this.#process.clock.now() >= deadlineAt || left === 0) return { reached: seen.size - failed.size - left, failed: failed.size, left };
      yield* this.#tellAll(due, goal, failed);
      const waitMs = pauseMs;
      yield* until<null>((done) => void this.#process.after(waitMs, 'members', () => done(null)));
      pauseMs = Math.min(pauseMs * 2, HOST_LIMITS.membersPauseMaxMs);
    }
  }

  *#living({ id, project }: JobEffect): Flow<SandboxState[] | null> {
    const edges = yield* until<Answer<StoredCommit[]>>((done) => this.#process.log.lastOfEach(EDGES, done));
    if (!edges.ok) return null;
    const losses = new Map(edges.value.map(({ address, commit }) => [address.id, commit.state as unknown as EdgeState]));
    const living: SandboxState[] = [];
    for (const shard of this.#shards) {
      const found = yield* until<Answer<StoredCommit[]>>((done) => this.#process.log.lastOfEach({ shard, project, kind: 'sandbox' }, done));
      if (!found.ok) return null;
      for (const { commit } of found.value) {
        const state = commit.state as unknown as SandboxState;
        if (state.spec.labels[PLATFORM_LABELS.job] === id && !ENDED_STATUSES.has(withLoss(state, losses.get(state.edge)).status)) living.push(state);
      }
    }
    return living;
  }

  *#tellAll(due: readonly SandboxState[], goal: MemberGoal, failed: Set<string>): Flow<void> {
    const command = COMMANDS[goal];
    for (let from = 0; from < due.length; from += HOST_LIMITS.membersInFlight)
      yield* until<null>(together(due.slice(from, from + HOST_LIMITS.membersInFlight).map((member) => this.#tell(member, command, failed))));
  }

  /** A state that has changed meanwhile shows with the next look; what no other try would help is given up. */
  *#tell({ id, project }: SandboxState, command: SandboxBusCommand, failed: Set<string>): Flow<void> {
    const key = this.#process.freshId();
    const answer = yield* until<ApiAnswer<unknown> | null>((done) =>
      this.#client.call<unknown>((api, answered) => api.lifecycle({ project, id, command, key }, answered), done),
    );
    if (!answer || answer.ok) return;
    const { retry, code } = answer.error;
    if (retry === 'never' && code !== 'INVALID_STATE' && code !== 'SANDBOX_ENDED') failed.add(id);
  }
}
