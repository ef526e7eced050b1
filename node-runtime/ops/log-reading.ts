/**
 * How far a role has read each shard that it follows. One that stands still looks alive and decides on what was; a distance that
 * comes and goes with the load is none of that.
 */
import type { Shard } from '#bus/ids.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { OPS_LIMITS } from './limits.ts';

type Reading = { readonly shard: Shard; handledTo: number; movedAtMs: number };

export class LogReading {
  readonly #now: () => number;
  readonly #readings = new Set<Reading>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A reader begins; told of each sequence that it has handled. */
  begin(shard: Shard, fromSequence: number): { moved(sequence: number): void; end(): void } {
    const reading: Reading = { shard, handledTo: fromSequence - 1, movedAtMs: this.#now() };
    this.#readings.add(reading);
    return {
      moved: (sequence) => void Object.assign(reading, { handledTo: sequence, movedAtMs: this.#now() }),
      end: () => void this.#readings.delete(reading),
    };
  }

  /** What is wrong, or null: the log does not answer, or a reader of it is far behind, or is behind and stands still. */
  async look(log: Pick<EventLog, 'bounds'>, shards: readonly Shard[]): Promise<string | null> {
    const ends = new Map(await Promise.all(shards.map(async (shard) => [shard, (await log.bounds(shard)).lastSequence] as const)));
    for (const { shard, handledTo, movedAtMs } of this.#readings) {
      const behind = (ends.get(shard) ?? 0) - handledTo;
      const stillMs = Math.round(this.#now() - movedAtMs);
      if (behind > OPS_LIMITS.readingLagCommits) return `it has read shard ${shard} to ${behind} commits before its end`;
      if (behind > OPS_LIMITS.readingStillCommits && stillMs > OPS_LIMITS.readingStillMs)
        return `it stands still in shard ${shard}, ${behind} commits before its end, for ${Math.round(stillMs / 1_000)} s`;
    }
    return null;
  }
}
