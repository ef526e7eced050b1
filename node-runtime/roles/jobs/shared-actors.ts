/**
 * Hosts the actors of one kind together with the other instances of this role: each decides for any of them, one does its work.
 *
 * Learns of commits from `dsec.out`; what is lost there is found by reading the newest states now and then. Does not decide
 * anything about the actors.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { decodeCommit } from '#bus/envelope.ts';
import { toWireError } from '#bus/errors.ts';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { type ActorAddress, commitSubject, outFilter, parseCommitSubject } from '#bus/subjects.ts';
import type { Effect } from '#actors/kernel/definition.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver, type DriverOptions } from '../driver/driver.ts';
import { JOBS_LIMITS } from './limits.ts';
import type { Presence } from '../presence.ts';

type Newest<S> = { readonly state: S; readonly stored: StoredCommit };
type Kind = ActorAddress['kind'];
type Options<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> = {
  readonly connection: NatsConnection;
  readonly shards: readonly Shard[];
  readonly presence: () => Presence;
  readonly driver: Omit<DriverOptions<S, C, E, F>, 'doesWork' | 'onAdopted'>;
};

export class SharedActors<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly #o: Options<S, C, E, F>;
  readonly #kind: Kind;
  readonly #eventLog: EventLog;
  readonly #log: Log;
  readonly #driver: ActorDriver<S, C, E, F>;
  /** Actors whose work is done here. */
  readonly #held = new Map<string, ActorAddress>();
  #subscription: { unsubscribe(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;
  /** Why the log could not be gone through last time, if it could not. */
  #missed: string | null = 'its work has not been taken up yet';

  constructor(options: Options<S, C, E, F>) {
    this.#o = options;
    this.#kind = options.driver.definition.kind;
    this.#eventLog = options.driver.eventLog;
    this.#log = options.driver.log;
    this.#driver = new ActorDriver({
      ...options.driver,
      doesWork: (address) => this.#isOpen && options.presence().owns(address.id),
      onAdopted: (_, { address }, over) => (over ? this.#held.delete(commitSubject(address)) : this.#hold(address)),
    });
  }

  /** Begins to do the work of what this instance owns. */
  async open(): Promise<void> {
    this.#isOpen = true;
    this.#subscription = this.#o.connection.subscribe(outFilter({ kind: this.#kind }), {
      callback: (error, message) => {
        if (!error && message.data.byteLength > 0) this.#hear(message.subject, message.data, message.headers?.get('Nats-Sequence'));
      },
    });
    await this.catchUp();
    this.#timer = setInterval(() => void this.catchUp(), JOBS_LIMITS.catchUpEveryMs);
  }

  /** Null, or why work may lie that nobody does. */
  get missed(): string | null {
    return this.#missed;
  }

  /** Actors whose work is done here. */
  get heldCount(): number {
    return this.#held.size;
  }

  close(): void {
    this.#isOpen = false;
    clearInterval(this.#timer);
    this.#subscription?.unsubscribe();
    this.#driver.close();
  }

  /** Decides here, whoever does the work. What is not this instance's is read anew each time: others write it too. */
  async submit(address: ActorAddress, command: C, meta: CommandMeta): Promise<CommandResult> {
    const result = await this.#driver.submit(address, command, meta);
    if (!this.#held.has(commitSubject(address))) this.#driver.evict(address);
    return result;
  }

  peek(address: ActorAddress): Newest<S> | undefined {
    return this.#driver.peek(address);
  }

  /** Newest state of one actor, from memory when its work is done here, otherwise from the log. */
  async newest(address: ActorAddress): Promise<Newest<S> | null> {
    const held = this.#heldState(address);
    if (held) return held;
    const stored = await this.#eventLog.last(address);
    return stored && this.#typed(stored);
  }

  /** Newest states of all of a project's actors in a shard. Of those whose work is done here nothing is read, however long their histories are. */
  async newestOfAll(shard: Shard, project: ProjectName): Promise<Newest<S>[]> {
    const filter = { shard, project, kind: this.#kind, home: '_' } as const;
    const found: Newest<S>[] = [];
    const away = new Map<string, ActorAddress>();
    for (const address of await this.#eventLog.addressesOf(filter)) {
      const held = this.#heldState(address);
      if (held) found.push(held);
      else away.set(commitSubject(address), address);
    }
    const isMany = away.size > JOBS_LIMITS.readsInFlight;
    const read = isMany ? await this.#eventLog.lastOfEach(filter) : await Promise.all([...away.values()].map((address) => this.#eventLog.last(address)));
    for (const stored of read) if (stored && away.has(commitSubject(stored.address))) found.push(this.#typed(stored));
    return found;
  }

  /** Takes what is owned here now, lets go of what is not. Errors are reported: the next time comes by itself. */
  async catchUp(): Promise<void> {
    for (const [key, address] of this.#held)
      if (!this.#o.presence().owns(address.id)) {
        this.#held.delete(key);
        this.#driver.release(address);
      }
    try {
      for (const shard of this.#o.shards)
        for (const stored of await this.#eventLog.lastOfEach({ shard, kind: this.#kind, home: '_' })) if (this.#isOpen) this.#take(stored);
      this.#missed = null;
    } catch (thrown) {
      this.#missed = `what there is to do could not be read: ${toWireError(thrown).message}`;
      this.#log.warn('actors.catch_up_failed', { kind: this.#kind, code: toWireError(thrown).code, message: toWireError(thrown).message });
    }
  }

  #heldState(address: ActorAddress): Newest<S> | undefined {
    return this.#held.has(commitSubject(address)) ? this.#driver.peek(address) : undefined;
  }

  #typed(stored: StoredCommit): Newest<S> {
    return { stored, state: this.#o.driver.definition.parseState(stored.commit.state, stored.commit.schema) };
  }

  #hear(subject: string, data: Uint8Array, sequence: string | undefined): void {
    const address = parseCommitSubject(subject);
    if (!address || !sequence || !this.#o.presence().owns(address.id)) return;
    // Most of what is heard was decided here: it need not be read to be known.
    if (this.#held.has(commitSubject(address)) && (this.#driver.peek(address)?.stored.sequence ?? 0) >= Number(sequence)) return;
    try {
      this.#take({ address, sequence: Number(sequence), commit: decodeCommit(data) });
    } catch (thrown) {
      this.#log.warn('commit.unreadable', { subject, message: toWireError(thrown).message });
    }
  }

  #take(stored: StoredCommit): void {
    if (!this.#o.presence().owns(stored.address.id)) return;
    const known = this.#driver.peek(stored.address);
    if (known && known.stored.sequence >= stored.sequence && this.#held.has(commitSubject(stored.address))) return;
    if (this.#o.driver.definition.isOver(this.#o.driver.definition.parseState(stored.commit.state, stored.commit.schema))) return;
    this.#driver.adopt(stored);
  }

  /** What was only decided here, for another instance, is not kept. */
  #hold(address: ActorAddress): void {
    if (this.#isOpen && this.#o.presence().owns(address.id)) this.#held.set(commitSubject(address), address);
    else queueMicrotask(() => this.#driver.evict(address));
  }
}
