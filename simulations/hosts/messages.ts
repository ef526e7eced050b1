/**
 * Sends what a request's state calls for, as `roles/placement/messages.ts`; what is in each message and on which subject is decided in
 * `actors/request/request.messages.ts`. What this process has sent it does not send again.
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { RequestState } from '#bus/request/schema.ts';
import type { DecisionMark, Fleet } from '#actors/placement/fleet.ts';
import type { RequestEffect } from '#actors/request/request.effects.ts';
import { messageOf } from '#actors/request/request.messages.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Parts } from './parts.ts';
import type { Process } from './process.ts';

/** What was noted of a choice when it was made, by Edge. */
export type Noted = ReadonlyMap<EdgeName, DecisionMark>;
const NOTHING_NOTED: Noted = new Map();
export type SendOptions = { readonly before?: RequestState | null; readonly noted?: Noted };

export type MessagesOptions = {
  readonly process: Process;
  readonly fleet: Fleet;
  readonly parts: Parts;
  readonly laneCount: number;
  readonly shardCount: number;
};
type Sending = { readonly effect: RequestEffect; readonly cause: CommandEnvelope; readonly state: RequestState; readonly mark: DecisionMark | undefined };

export class SimMessages {
  readonly #o: MessagesOptions;
  /** By request, the effects whose message is stored. */
  readonly #sent = new Map<string, Set<string>>();

  constructor(options: MessagesOptions) {
    this.#o = options;
  }

  /** True when all that the state calls for is stored in the queue, or, with `before`, what that one did not call for; false when one of them may not be. */
  send(cause: CommandEnvelope, state: RequestState, done: (ok: boolean) => void, { before = null, noted = NOTHING_NOTED }: SendOptions = {}): void {
    const sent = this.#sent.get(state.id) ?? new Set<string>();
    this.#sent.set(state.id, sent);
    const called = before ? this.#o.parts.newEffects(before, state) : this.#o.parts.request.pendingEffects(state);
    const due = called.filter(({ key }) => !sent.has(key));
    let left = due.length;
    let isWhole = true;
    if (left === 0) return done(true);
    for (const effect of due)
      this.#enqueue({ effect, cause, state, mark: this.#markOf(effect, state, noted) }, 1, (ok) => {
        if (ok) sent.add(effect.key);
        isWhole &&= ok;
        left -= 1;
        if (left === 0) done(isWhole);
      });
  }

  forget(id: string): void {
    this.#sent.delete(id);
  }

  #markOf(effect: RequestEffect, { spec, project }: RequestState, noted: Noted): DecisionMark | undefined {
    const { fleet, parts, process } = this.#o;
    if (effect.type !== 'ensureForwarded' || !parts.overlay) return undefined;
    return noted.get(effect.edge) ?? fleet.noteAssigned(effect.edge, effect.assignments.length, spec, project, process.clock.now());
  }

  #enqueue(sending: Sending, attempt: number, done: (ok: boolean) => void): void {
    const { process } = this.#o;
    const { effect, cause, state, mark } = sending;
    const { subject, id, data } = messageOf(effect, state, this.#o);
    const envelope: CommandEnvelope = { ...cause, id, at: process.clock.now(), deadlineAt: state.deadlineAt, causationId: cause.id, replyTo: undefined, data };
    process.queue.send(subject, envelope, (outcome) => {
      if (outcome.outcome === 'applied') {
        mark?.forwarded(outcome.sequence);
        done(true);
      } else if (outcome.outcome === 'not_applied' || attempt >= HOST_LIMITS.sendAttempts) done(false);
      else process.after(HOST_LIMITS.sendRetryMs, 'send again', () => this.#enqueue(sending, attempt + 1, done));
    });
  }
}
