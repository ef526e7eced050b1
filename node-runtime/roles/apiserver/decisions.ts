/** Hands a life-cycle command to the owning Edge through the queue, and waits a while for the decision. */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { CommandReply, type Decision } from '#bus/api/schema.ts';
import { type CommandEnvelope, encode } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { safeParse } from '#bus/proof.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import { APISERVER_LIMITS } from './limits.ts';

type Waiting = { readonly decided: Promise<CommandReply | null>; readonly resolve: (reply: CommandReply) => void };

export class Decisions {
  readonly #queue: CommandQueue;
  readonly #prefix: string;
  readonly #waiting = new Map<string, Waiting>();
  readonly #subscription: { unsubscribe(): void };

  /** `onTurn`: the turn of a create has come and led to no commit. */
  constructor(connection: NatsConnection, queue: CommandQueue, onTurn: (commandId: string) => void) {
    this.#queue = queue;
    this.#prefix = createInbox();
    this.#subscription = connection.subscribe(this.#prefix, {
      callback: (error, message) => {
        if (error) return;
        const reply = safeParse(CommandReply, jsonOrUndefined(message.data));
        if (!reply.success) return;
        const waiting = this.#waiting.get(reply.data.commandId);
        if (waiting) waiting.resolve(reply.data);
        else onTurn(reply.data.commandId);
      },
    });
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  /** Stores the command, then answers with the Edge's decision, or `pending` when it has not decided in time. */
  async decide(subject: string, envelope: CommandEnvelope, waitMs: number = APISERVER_LIMITS.decisionWaitMs): Promise<Decision> {
    const { decided } = this.#waitFor(envelope.id, waitMs);
    await this.store(subject, { ...envelope, replyTo: this.#prefix });
    const reply = await decided;
    if (!reply) return { decision: 'pending', reason: `the node has not answered within ${waitMs} ms; the command is stored and will be obeyed` };
    if (!reply.result.ok) throw new DsecError(reply.result.error);
    return reply.result.data;
  }

  /** Who asks the same at the same time waits for the same answer: the queue takes it once, and the Edge answers once. */
  #waitFor(commandId: string, waitMs: number): Waiting {
    const there = this.#waiting.get(commandId);
    if (there) return there;
    let resolve: Waiting['resolve'] = () => {};
    const decided = new Promise<CommandReply | null>((settle) => {
      const timer = setTimeout(() => settle(null), waitMs);
      resolve = (reply) => {
        clearTimeout(timer);
        settle(reply);
      };
    }).finally(() => this.#waiting.delete(commandId));
    const waiting = { decided, resolve };
    this.#waiting.set(commandId, waiting);
    return waiting;
  }

  /** Stores a create; a placement says on our inbox when its turn has come and leads to no commit. */
  storeCreate(subject: string, envelope: CommandEnvelope): Promise<void> {
    return this.store(subject, { ...envelope, replyTo: this.#prefix });
  }

  /** Stores a command; an unknown outcome is repeated with the same id, never with a new one. */
  async store(subject: string, envelope: CommandEnvelope): Promise<void> {
    const bytes = encode(envelope.data.type, envelope);
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#queue.enqueue(subject, envelope.id, bytes);
      if (outcome.outcome === 'applied') return;
      if (outcome.outcome === 'not_applied' || attempt >= APISERVER_LIMITS.enqueueAttempts) throw new DsecError(outcome.error);
      await new Promise((resolve) => setTimeout(resolve, APISERVER_LIMITS.enqueueRetryMs));
    }
  }
}

export const commandDeadline = (clock: Clock): CommandEnvelope['deadlineAt'] =>
  (clock.now() + APISERVER_LIMITS.commandDeadlineMs) as CommandEnvelope['deadlineAt'];
