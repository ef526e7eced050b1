/**
 * Sends what a request's state calls for: creates to Edges, chunks to their lane, reports and decisions between parents and chunks.
 *
 * Every message's id follows from the request and the effect, so whoever sends it, and however often, sends the same. What this
 * process has sent it does not send again; what the one before it sent, the receivers ignore.
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { encode } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { bodyHashOf, chunkIdFor, messageIdOf, type RequestId } from '#bus/ids.ts';
import type { DecideChunk, ReportChunk } from '#bus/request/group.ts';
import type { PlaceSandboxes, RequestState } from '#bus/request/schema.ts';
import type { LaunchSandboxes, ReleaseSandboxes } from '#bus/sandbox/commands.ts';
import { createLaneSubject, edgeCommandSubject, laneOf, reportLaneSubject } from '#bus/subjects.ts';
import type { Fleet } from '#actors/placement/fleet.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import { pendingRequestEffects, type RequestEffect } from '#actors/request/request.effects.ts';
import type { z } from 'zod';
import { PLACEMENT_LIMITS } from './limits.ts';

type Of<T extends RequestEffect['type']> = Extract<RequestEffect, { type: T }>;
type Message = { readonly subject: string; readonly data: CommandEnvelope['data'] };

export type MessagesOptions = {
  readonly queue: CommandQueue;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly laneCount: number;
  readonly shardCount: number;
};

export class Messages {
  readonly #o: MessagesOptions;
  /** By request, the effects whose message is stored. */
  readonly #sent = new Map<RequestId, Set<string>>();

  constructor(options: MessagesOptions) {
    this.#o = options;
  }

  /** Resolves when all that the state calls for is stored in the queue; rejects when one of them may not be. */
  async send(cause: CommandEnvelope, state: RequestState): Promise<void> {
    const sent = this.#sent.get(state.id) ?? new Set();
    this.#sent.set(state.id, sent);
    const due = pendingRequestEffects(state).filter(({ key }) => !sent.has(key));
    await Promise.all(
      due.map(async (effect) => {
        const mark = effect.type === 'ensureForwarded' ? this.#noteAssigned(effect, state) : undefined;
        const sequence = await this.#enqueue(this.#messageOf(effect, state), messageIdOf(state.project, state.id, shortened(effect.key)), cause, state);
        mark?.forwarded(sequence);
        sent.add(effect.key);
      }),
    );
  }

  forget(id: RequestId): void {
    this.#sent.delete(id);
  }

  #noteAssigned({ edge, assignments }: Of<'ensureForwarded'>, { spec, project }: RequestState) {
    return this.#o.fleet.noteAssigned(edge, assignments.length, spec, project, this.#o.clock.now());
  }

  #messageOf(effect: RequestEffect, state: RequestState): Message {
    const lane = laneOf(state.project, this.#o.laneCount);
    switch (effect.type) {
      case 'ensureForwarded':
        return { subject: edgeCommandSubject(effect.edge, '_'), data: launchOf(effect, state) };
      case 'ensureReleased':
        return { subject: edgeCommandSubject(effect.edge, '_'), data: releaseOf(effect, state) };
      case 'ensureReported':
        return { subject: reportLaneSubject(lane), data: reportOf(effect, state) };
      case 'ensureChunkPlaced':
        return { subject: createLaneSubject(lane), data: placeOf(effect, state, this.#o.shardCount) };
      case 'ensureChunkDecided':
        return { subject: reportLaneSubject(lane), data: decideOf(effect, state, this.#o.shardCount) };
    }
  }

  /** Answers with the message's place in the queue. An unknown outcome is repeated under the same id, never under a new one. */
  async #enqueue({ subject, data }: Message, id: string, cause: CommandEnvelope, { deadlineAt }: RequestState): Promise<number> {
    const envelope: CommandEnvelope = { ...cause, id, at: this.#o.clock.now(), deadlineAt, causationId: cause.id, replyTo: undefined, data };
    const bytes = encode(data.type, envelope);
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#o.queue.enqueue(subject, id, bytes);
      if (outcome.outcome === 'applied') return outcome.sequence;
      if (outcome.outcome === 'not_applied' || attempt >= PLACEMENT_LIMITS.sendAttempts) throw new DsecError(outcome.error);
      await new Promise((resolve) => setTimeout(resolve, PLACEMENT_LIMITS.sendRetryMs));
    }
  }
}

/** Keys list the items they are about, and ids have a limit. */
const KEY_LENGTH_MAX = 60;
const shortened = (key: string): string => (key.length <= KEY_LENGTH_MAX ? key : `${key.slice(0, 27)}~${bodyHashOf(key)}`);

const itemsOf = ({ assignments }: Of<'ensureForwarded' | 'ensureReleased'>): LaunchSandboxes['items'] =>
  assignments.map(({ sandboxId, index, attempt }) => ({ sandboxId, index, attempt }));

const launchOf = (effect: Of<'ensureForwarded'>, { id, spec, forkedFrom }: RequestState): LaunchSandboxes => ({
  type: 'LaunchSandboxes',
  requestId: id,
  spec,
  forkedFrom,
  items: itemsOf(effect),
  heldUntil: effect.heldUntil,
  follow: effect.follow,
});

const releaseOf = (effect: Of<'ensureReleased'>, { id }: RequestState): ReleaseSandboxes => ({
  type: 'ReleaseSandboxes',
  requestId: id,
  decision: effect.decision,
  items: itemsOf(effect),
});

const reportOf = ({ parent, chunk, phase, counts, error }: Of<'ensureReported'>, { project }: RequestState): z.infer<typeof ReportChunk> => ({
  type: 'ReportChunk',
  project,
  requestId: parent,
  chunk,
  phase,
  counts,
  error,
});

const placeOf = ({ chunk, first, count }: Of<'ensureChunkPlaced'>, parent: RequestState, shardCount: number): z.infer<typeof PlaceSandboxes> => ({
  type: 'PlaceSandboxes',
  project: parent.project,
  key: parent.key,
  requestId: chunkIdFor(parent.id, chunk, shardCount),
  bodyHash: parent.bodyHash,
  count,
  spec: parent.spec,
  forkedFrom: parent.forkedFrom,
  deadlineAt: parent.deadlineAt,
  chunkOf: { requestId: parent.id, chunk, first, mode: parent.group?.mode ?? 'asManyAsFit' },
});

const decideOf = ({ chunk, decision, error }: Of<'ensureChunkDecided'>, parent: RequestState, shardCount: number): z.infer<typeof DecideChunk> => ({
  type: 'DecideChunk',
  project: parent.project,
  requestId: chunkIdFor(parent.id, chunk, shardCount),
  decision,
  error,
});
