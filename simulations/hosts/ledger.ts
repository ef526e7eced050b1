/** Reads what is in use from the log, as `roles/iam/ledger.ts`: newest commits at the start, then every commit as it is stored. */
import type { Shard } from '#bus/ids.ts';
import type { Positions } from '#bus/project/schema.ts';
import { SYSTEM_SHARD } from '#bus/subjects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { reaches } from '#actors/project/quota.ts';
import type { UsageFold } from '#actors/project/usage.ts';
import type { Seen } from '../ports/tail.ts';
import { type Flow, until } from './flow.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

type Waiting = { readonly positions: Positions; readonly settle: (reached: boolean) => void };

export class SimLedger {
  readonly #process: Process;
  readonly #shards: readonly Shard[];
  readonly #fold: UsageFold;
  readonly #onProject: (stored: StoredCommit) => void;
  readonly #waiting = new Set<Waiting>();

  constructor(process: Process, shards: readonly Shard[], fold: UsageFold, onProject: (stored: StoredCommit) => void) {
    this.#process = process;
    this.#shards = shards;
    this.#fold = fold;
    this.#onProject = onProject;
  }

  get fold(): UsageFold {
    this.#fold.expire(this.#process.clock.now());
    return this.#fold;
  }

  /** False when the log did not answer: its process starts anew. */
  *open(): Flow<boolean> {
    for (const shard of this.#shards) if (!(yield* this.#begin(shard))) return false;
    return true;
  }

  *#begin(shard: Shard): Flow<boolean> {
    const { log } = this.#process;
    const bounds = yield* until<Parameters<Parameters<typeof log.bounds>[1]>[0]>((done) => log.bounds(shard, done));
    if (!bounds.ok) return false;
    const kinds = shard === SYSTEM_SHARD ? (['request', 'sandbox', 'edge', 'project'] as const) : (['request', 'sandbox'] as const);
    for (const kind of kinds) {
      const found = yield* until<Parameters<Parameters<typeof log.lastOfEach>[1]>[0]>((done) => log.lastOfEach({ shard, kind }, done));
      if (!found.ok) return false;
      for (const stored of found.value) kind === 'project' ? this.#onProject(stored) : this.#fold.take(stored);
    }
    const { lastSequence } = bounds.value;
    this.#fold.reached(shard, lastSequence);
    const tail = log.tail(shard, lastSequence + 1, (seen, done) => {
      this.#saw(shard, seen);
      done(true);
    });
    this.#process.every(HOST_LIMITS.tailHeartbeatMs, 'tail lives', () => tail.wake());
    return true;
  }

  #saw(shard: Shard, seen: Seen): void {
    if (seen.kind === 'commit') {
      this.#fold.apply(seen.stored);
      if (seen.stored.address.kind === 'project') this.#onProject(seen.stored);
    }
    this.#fold.reached(shard, seen.kind === 'commit' ? seen.stored.sequence : seen.sequence);
    const { asOf } = this.#fold;
    for (const waiting of this.#waiting) if (reaches(asOf, waiting.positions)) waiting.settle(true);
  }

  /** Where the log ends now, in every shard; null when it does not answer. */
  *ends(): Flow<Positions | null> {
    const { log } = this.#process;
    const positions: Record<string, number> = {};
    for (const shard of this.#shards) {
      const bounds = yield* until<Parameters<Parameters<typeof log.bounds>[1]>[0]>((done) => log.bounds(shard, done));
      if (!bounds.ok) return null;
      positions[shard] = bounds.value.lastSequence;
    }
    return positions;
  }

  /** True when the fold has read that far; false when it does not get there in time. */
  *reach(positions: Positions): Flow<boolean> {
    if (reaches(this.#fold.asOf, positions)) return true;
    return yield* until<boolean>((done) => {
      const { clock } = this.#process;
      const waiting: Waiting = {
        positions,
        settle: (reached) => {
          clock.cancel(timer);
          this.#waiting.delete(waiting);
          done(reached);
        },
      };
      const timer = this.#process.after(HOST_LIMITS.foldWaitMs, 'fold too late', () => waiting.settle(false));
      this.#waiting.add(waiting);
    });
  }
}
