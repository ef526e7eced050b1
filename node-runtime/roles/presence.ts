/**
 * Which instance of a role does the work of which actor: the one with the highest hash of both, among those that were heard lately
 * (rendezvous hashing). Nothing rests on it but economy: two instances that both think so do the same idempotent work.
 */
import { createHash } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { presenceFilter, presenceSubject } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';

export const PRESENCE_LIMITS = {
  /** How often an instance says that it is there. */
  everyMs: 1_000,
  /** An instance not heard for this long is taken for dead. A few lost beats are not a death. */
  timeoutMs: 4_000,
} as const;

export type PresenceOptions = {
  readonly connection: NatsConnection;
  readonly clock: Clock;
  readonly role: string;
  readonly instance: string;
  /** Who owns what may have changed. */
  readonly onChange: () => void;
};

const weight = (instance: string, actorId: string): string => createHash('sha256').update(`${instance}\0${actorId}`).digest('hex');

export class Presence {
  readonly #o: PresenceOptions;
  /** Instance → when it was heard last, monotonic. */
  readonly #heard = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #subscription: { unsubscribe(): void };

  constructor(options: PresenceOptions) {
    this.#o = options;
    const { connection, role, instance } = options;
    this.#heard.set(instance, Number.POSITIVE_INFINITY);
    this.#subscription = connection.subscribe(presenceFilter(role), {
      callback: (error, message) => {
        const name = message.subject.split('.').at(-1);
        if (!error && name && name !== instance) this.#hear(name, message.data.byteLength > 0);
      },
    });
    this.#beat('here');
    this.#timer = setInterval(() => {
      this.#beat('here');
      this.#forgetSilent();
    }, PRESENCE_LIMITS.everyMs);
  }

  /** Instances that are there, this one among them. */
  get count(): number {
    return this.#heard.size;
  }

  /** Whether the work of this actor is this instance's. */
  owns(actorId: string): boolean {
    const own = weight(this.#o.instance, actorId);
    for (const other of this.#heard.keys()) if (other !== this.#o.instance && weight(other, actorId) > own) return false;
    return true;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#beat('');
    this.#subscription.unsubscribe();
  }

  /** An empty beat says good-bye. */
  #beat(payload: '' | 'here'): void {
    if (!this.#o.connection.isClosed()) this.#o.connection.publish(presenceSubject(this.#o.role, this.#o.instance), payload);
  }

  #hear(name: string, isHere: boolean): void {
    const isKnown = this.#heard.has(name);
    if (isHere) this.#heard.set(name, this.#o.clock.monotonicMs());
    else this.#heard.delete(name);
    if (isKnown !== isHere) this.#o.onChange();
  }

  #forgetSilent(): void {
    const before = this.#heard.size;
    const oldest = this.#o.clock.monotonicMs() - PRESENCE_LIMITS.timeoutMs;
    for (const [name, at] of this.#heard) if (at < oldest) this.#heard.delete(name);
    if (this.#heard.size !== before) this.#o.onChange();
  }
}
