/** Follows one shard from a sequence on: in order, one at a time, each at least once; only over a store that keeps everything. */
import type { Shard } from '#bus/ids.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { US_PER_MS } from '../kernel/virtual-time.ts';
import type { BusServer } from './event-log.ts';
import { type EventStore, entryOf } from './event-store.ts';
import { PORT_LIMITS } from './limits.ts';
import type { Link } from './link.ts';

export type Seen =
  | { readonly kind: 'commit'; readonly stored: StoredCommit }
  | { readonly kind: 'forgotten'; readonly address: ActorAddress; readonly sequence: number };
/** `done(false)`: it failed on it, and gets it again after a pause. */
export type SeenHandler = (seen: Seen, done: (ok: boolean) => void) => void;

export class SimTail {
  readonly #server: BusServer;
  readonly #store: EventStore;
  readonly #link: Link;
  readonly #shard: Shard;
  readonly #handler: SeenHandler;
  #next: number;
  #busy = false;
  #closed = false;
  #whenIdle: (() => void) | undefined;

  constructor(server: BusServer, store: EventStore, link: Link, shard: Shard, fromSequence: number, handler: SeenHandler) {
    this.#server = server;
    this.#store = store;
    this.#link = link;
    this.#shard = shard;
    this.#next = fromSequence;
    this.#handler = handler;
    store.observe(() => this.wake());
    this.wake();
  }

  /** `idle` runs when the handler does no more. */
  close(idle: () => void = () => {}): void {
    this.#closed = true;
    if (this.#busy) this.#whenIdle = idle;
    else idle();
  }

  wake(): void {
    if (this.#busy || this.#closed || !this.#server.stores || !this.#link.isOpen) return;
    const message = this.#store.from(this.#server.nowMs, this.#shard, this.#next);
    if (!message) return;
    this.#busy = true;
    this.#link.receive(
      'tailed',
      () => this.#handle(message.sequence),
      () => this.#again(),
    );
  }

  #handle(sequence: number): void {
    const message = this.#store.from(this.#server.nowMs, this.#shard, sequence);
    const entry = message && entryOf(message);
    const done = (ok: boolean) => {
      if (!ok) return this.#again();
      this.#next = (message?.sequence ?? sequence) + 1;
      this.#rest();
    };
    if (entry?.kind === 'commit' || entry?.kind === 'forgotten') this.#handler(entry, done);
    else done(true); // nobody can read it
  }

  #again(): void {
    this.#server.time.after(PORT_LIMITS.failedHandlerRetryMs * US_PER_MS, 'tail again', () => this.#rest());
  }

  #rest(): void {
    this.#busy = false;
    this.#whenIdle?.();
    if (this.#link.isOpen) this.wake();
  }
}
