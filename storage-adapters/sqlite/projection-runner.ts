/**
 * Feeds a projection from the event log: one tail per shard, commits gathered into transactions, for as long as it runs.
 *
 * A transaction that fails is tried again with the same commits, while the tail waits: nothing is passed over. A file that
 * turns out damaged is thrown away and built again from the beginning of every stream.
 */
import { type Clock, systemClock } from '#actors/ports/clock.ts';
import type { EventLog, Tail } from '#actors/ports/event-log.ts';
import { DsecError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { commitSubject } from '#bus/subjects.ts';
import { isRuined } from './database.ts';
import { PROJECTION_LIMITS } from './limits.ts';
import type { ProjectionEntry, SandboxProjection, Sequences } from './sandbox.projection.ts';

export type ProjectionRunnerOptions = {
  readonly projection: SandboxProjection;
  readonly eventLog: EventLog;
  readonly shards: readonly Shard[];
  /** Told of what went wrong; it is mended or tried again without anybody's help. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
};
export type ProjectionRunner = {
  /** Where the streams ended when feeding began: the projection is current once `waitFor` has reached it. */
  readonly startedAt: Sequences;
  /** Stops feeding, after what was received is folded. */
  close(): Promise<void>;
};

/** Resolves when every shard is being fed, which is before all of it is folded. */
export const runProjection = async (options: ProjectionRunnerOptions): Promise<ProjectionRunner> => {
  const runner = new Runner(options);
  await runner.start();
  return runner;
};

class Runner implements ProjectionRunner {
  readonly #options: ProjectionRunnerOptions;
  readonly #startedAt: Record<string, number> = {};
  #feeders: ShardFeeder[] = [];
  #rebuilding: Promise<void> | undefined;
  #closing = false;

  constructor(options: ProjectionRunnerOptions) {
    this.#options = options;
  }

  get startedAt(): Sequences {
    return this.#startedAt;
  }

  async start(): Promise<void> {
    const { eventLog, projection, shards, clock = systemClock } = this.#options;
    projection.onRuined = (error) => this.#failed(error);
    for (const shard of shards) {
      const bounds = await eventLog.bounds(shard);
      this.#startedAt[shard] = bounds.lastSequence;
      const feeder = new ShardFeeder(shard, projection, clock, (error) => this.#failed(error));
      this.#feeders.push(feeder);
      await feeder.open(eventLog, projection.begin(shard, bounds, clock.now()));
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#rebuilding;
    await this.#stop();
  }

  #failed(error: unknown): void {
    this.#options.onError(error);
    if (!isRuined(error) || this.#closing) return;
    this.#rebuilding ??= this.#rebuild().finally(() => {
      this.#rebuilding = undefined;
    });
  }

  /** Tried until it succeeds: the bus may be away just now. */
  async #rebuild(): Promise<void> {
    while (!this.#closing) {
      try {
        for (const feeder of this.#feeders) feeder.abandon();
        await this.#stop();
        this.#options.projection.reset();
        await this.start();
        return;
      } catch (thrown) {
        this.#options.onError(thrown);
        await new Promise((resolve) => setTimeout(resolve, PROJECTION_LIMITS.retryMs));
      }
    }
  }

  async #stop(): Promise<void> {
    const feeders = this.#feeders;
    this.#feeders = [];
    await Promise.all(feeders.map((feeder) => feeder.close()));
  }
}

/** Gathers one shard's commits: what has arrived by the end of the current turn becomes one transaction; while they are many, of some turns. */
class ShardFeeder {
  readonly #shard: Shard;
  readonly #projection: SandboxProjection;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  /** At most `batchCommits`, because the handler awaits the transaction when it is full. */
  #pending: ProjectionEntry[] = [];
  #tail: Tail | undefined;
  /** Calls off the transaction that is due. */
  #cancelDue: (() => void) | undefined;
  #abandoned = false;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(shard: Shard, projection: SandboxProjection, clock: Clock, onError: (error: unknown) => void) {
    this.#shard = shard;
    this.#projection = projection;
    this.#clock = clock;
    this.#onError = onError;
  }

  async open(eventLog: EventLog, fromSequence: number): Promise<void> {
    const onCommit = (entry: ProjectionEntry): void => this.#add(entry);
    this.#tail = await eventLog.tail(
      this.#shard,
      fromSequence,
      (stored) => onCommit({ kind: 'commit', stored }),
      ({ address, sequence }) => onCommit({ kind: 'forgotten', address, sequence }),
    );
  }

  /** The rows are to be thrown away: what was received is not worth folding. */
  abandon(): void {
    this.#abandoned = true;
    this.#pending = [];
  }

  async close(): Promise<void> {
    await this.#tail?.close();
    this.#cancel();
    if (!this.#abandoned) this.#flush();
  }

  /** Throws while the last transaction cannot be written: the tail keeps the commit and offers it again after a pause. */
  #add(entry: ProjectionEntry): void {
    if (this.#abandoned) return;
    if (this.#pending.length >= PROJECTION_LIMITS.batchCommits && !this.#flush())
      throw DsecError.of('NO_SPACE', `shard ${this.#shard}: the projection cannot be written now`);
    this.#pending.push(entry);
    this.#cancelDue ??= this.#later(() => this.#due());
  }

  #later(task: () => void): () => void {
    const sinceMs = performance.now() - this.#flushedAtMs;
    return sinceMs >= PROJECTION_LIMITS.gatherMs ? afterThisTurn(task) : after(PROJECTION_LIMITS.gatherMs - sinceMs, task);
  }

  #due(): void {
    const { manyCommits, gatherMs, gatherManyMs } = PROJECTION_LIMITS;
    const areMany = this.#pending.length >= manyCommits && performance.now() - this.#flushedAtMs < gatherManyMs;
    if (areMany && !this.#projection.isAwaited) this.#cancelDue = after(gatherMs, () => this.#due());
    else this.#flush();
  }

  #flush(): boolean {
    this.#cancel();
    if (this.#pending.length === 0) return true;
    this.#flushedAtMs = performance.now();
    try {
      const unreadable = this.#projection.apply(this.#shard, this.#pending, this.#clock.now());
      this.#pending = [];
      for (const { address, sequence } of unreadable)
        this.#onError(
          DsecError.of('MALFORMED_MESSAGE', `${commitSubject(address)} at sequence ${sequence} holds no state of a sandbox; its row stays as it was`),
        );
      return true;
    } catch (thrown) {
      this.#cancelDue = after(PROJECTION_LIMITS.retryMs, () => this.#flush());
      this.#onError(thrown);
      return false;
    }
  }

  #cancel(): void {
    this.#cancelDue?.();
    this.#cancelDue = undefined;
  }
}

const afterThisTurn = (task: () => void): (() => void) => {
  const due = setImmediate(task);
  return () => clearImmediate(due);
};
const after = (ms: number, task: () => void): (() => void) => {
  const due = setTimeout(task, ms);
  return () => clearTimeout(due);
};
