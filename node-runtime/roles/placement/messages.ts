/**
 * Sends what a request's state calls for; what is in each message and on which subject is decided in `request.messages.ts`. What this
 * process has sent it does not send again; what the one before it sent, the receivers ignore.
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { encode } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName, RequestId } from '#bus/ids.ts';
import type { RequestState } from '#bus/request/schema.ts';
import type { DecisionMark, Fleet } from '#actors/placement/fleet.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import { newRequestEffects, pendingRequestEffects, type RequestEffect } from '#actors/request/request.effects.ts';
import { messageOf, type RequestMessage } from '#actors/request/request.messages.ts';
import { PLACEMENT_LIMITS } from './limits.ts';

type Of<T extends RequestEffect['type']> = Extract<RequestEffect, { type: T }>;

/** What was noted of a choice when it was made, by Edge. */
export type Noted = ReadonlyMap<EdgeName, DecisionMark>;
const NOTHING_NOTED: Noted = new Map();
export type SendOptions = { readonly before?: RequestState | null; readonly noted?: Noted };

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

  /**
   * Resolves when all that the state calls for is stored in the queue, or, with `before`, what it calls for and that state did not;
   * rejects when one of them may not be.
   */
  async send(cause: CommandEnvelope, state: RequestState, { before = null, noted = NOTHING_NOTED }: SendOptions = {}): Promise<void> {
    const sent = this.#sent.get(state.id) ?? new Set();
    this.#sent.set(state.id, sent);
    const called = before ? newRequestEffects(before, state) : pendingRequestEffects(state);
    const due = called.filter(({ key }) => !sent.has(key));
    await Promise.all(
      due.map(async (effect) => {
        const mark = effect.type === 'ensureForwarded' ? (noted.get(effect.edge) ?? this.#noteAssigned(effect, state)) : undefined;
        const sequence = await this.#enqueue(messageOf(effect, state, this.#o), cause, state);
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

  /** Answers with the message's place in the queue. An unknown outcome is repeated under the same id, never under a new one. */
  async #enqueue({ subject, data, id }: RequestMessage, cause: CommandEnvelope, { deadlineAt }: RequestState): Promise<number> {
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
