/** Reads what is in use from the log: newest commits at the start, then every commit as it is stored. Decides nothing. */
import { DsecError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import type { Positions } from '#bus/project/schema.ts';
import { SYSTEM_SHARD } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit, Tail } from '#actors/ports/event-log.ts';
import { reaches } from '#actors/project/quota.ts';
import { UsageFold } from '#actors/project/usage.ts';
import type { Log } from '../../log/log.ts';
import { IAM_LIMITS } from './limits.ts';

export type LedgerOptions = {
  readonly eventLog: EventLog;
  readonly shards: readonly Shard[];
  readonly clock: Clock;
  readonly log: Log;
  readonly onProject: (stored: StoredCommit) => void;
};

type Waiting = { readonly positions: Positions; readonly settle: () => void };

export class Ledger {
  readonly #o: LedgerOptions;
  readonly #fold = new UsageFold();
  readonly #waiting = new Set<Waiting>();
  #tails: Tail[] = [];

  private constructor(options: LedgerOptions) {
    this.#o = options;
  }

  static async open(options: LedgerOptions): Promise<Ledger> {
    const ledger = new Ledger(options);
    for (const shard of options.shards) await ledger.#begin(shard);
    return ledger;
  }

  /** Up to date with the clock: assignments that nobody will admit any more are no use. */
  get fold(): UsageFold {
    this.#fold.expire(this.#o.clock.now());
    return this.#fold;
  }

  async #begin(shard: Shard): Promise<void> {
    const { eventLog } = this.#o;
    const { lastSequence } = await eventLog.bounds(shard);
    for (const kind of ['request', 'sandbox'] as const)
      for (const stored of await eventLog.lastOfEach({ shard, kind })) this.#unlessOdd(stored, () => this.#fold.take(stored));
    if (shard === SYSTEM_SHARD) {
      for (const stored of await eventLog.lastOfEach({ shard, kind: 'edge' })) this.#unlessOdd(stored, () => this.#fold.take(stored));
      for (const stored of await eventLog.lastOfEach({ shard, kind: 'project' })) this.#o.onProject(stored);
    }
    this.#fold.reached(shard, lastSequence);
    const onStored = (stored: StoredCommit) => {
      this.#unlessOdd(stored, () => this.#fold.apply(stored));
      this.#fold.reached(shard, stored.sequence);
      if (stored.address.kind === 'project') this.#o.onProject(stored);
      this.#wake();
    };
    const onForgotten = ({ sequence }: { readonly sequence: number }) => {
      this.#fold.reached(shard, sequence);
      this.#wake();
    };
    this.#tails.push(await eventLog.tail(shard, lastSequence + 1, onStored, onForgotten));
  }

  /**
   * A commit whose state is none, which no decision of ours can have made, uses nothing. It is told and passed over: the tail would
   * offer it for ever, and nobody could borrow any more.
   */
  #unlessOdd({ address, sequence }: StoredCommit, take: () => void): void {
    try {
      take();
    } catch (thrown) {
      this.#o.log.error('ledger.commit_passed_over', { actorId: address.id, kind: address.kind, sequence, message: String(thrown) });
    }
  }

  #wake(): void {
    if (this.#waiting.size === 0) return;
    const { asOf } = this.#fold;
    for (const waiting of this.#waiting) if (reaches(asOf, waiting.positions)) waiting.settle();
  }

  /** Where the log ends now, in every shard. */
  async ends(): Promise<Positions> {
    const { eventLog, shards } = this.#o;
    return Object.fromEntries(await Promise.all(shards.map(async (shard) => [shard, (await eventLog.bounds(shard)).lastSequence] as const)));
  }

  /** Resolves when the fold has read that far; BUS_UNAVAILABLE when it does not get there. */
  async reach(positions: Positions): Promise<void> {
    if (reaches(this.#fold.asOf, positions)) return;
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => (): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        settle();
      };
      const waiting: Waiting = { positions, settle: end(resolve) };
      const asTooLate = (): void => {
        const stands = JSON.stringify(this.#fold.asOf);
        reject(DsecError.of('BUS_UNAVAILABLE', `the log could not be read up to ${JSON.stringify(positions)}; it stands at ${stands}`));
      };
      const timer = setTimeout(end(asTooLate), IAM_LIMITS.foldWaitMs);
      this.#waiting.add(waiting);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#tails.map((tail) => tail.close()));
  }
}
