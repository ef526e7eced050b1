/**
 * How every scenario runs: a cluster with its checkers, a phase in which faults happen and nothing bad may (safety), then one in
 * which none happen and everything ends within a bound (liveness). In slices, so that whoever waits sees progress.
 */
import { CHECKERS } from '../checkers/all.ts';
import { type Checker, type Invariant, type MakeChecker, Violation } from '../checkers/checker.ts';
import { Cluster, type ClusterOptions, type Node } from '../cluster.ts';
import type { JobState } from '#bus/job/schema.ts';
import type { Observer } from '../hosts/observer.ts';
import { Trace } from '../kernel/trace.ts';
import { US_PER_MS } from '../kernel/virtual-time.ts';
import { commitOf } from '../ports/event-store.ts';

export type RunResult = {
  readonly seed: number;
  readonly hash: string;
  readonly steps: number;
  readonly virtualMs: number;
  readonly violation: Violation | null;
};

export type RunOptions = Omit<ClusterOptions, 'trace' | 'observers'> & {
  readonly trace?: Trace;
  readonly oneIn?: number;
  readonly checkers?: readonly MakeChecker[];
  readonly observers?: readonly Partial<Observer>[];
};

/** What was ended last has been reported and released after this. */
const QUIET_MS = 5_000;

export class Run {
  readonly cluster: Cluster;
  readonly trace: Trace;
  readonly #checkers: readonly Checker[];

  constructor(options: RunOptions) {
    this.trace = options.trace ?? new Trace();
    const fail = (invariant: Invariant, message: string): never => {
      throw new Violation(invariant, Math.floor(this.cluster.time.nowUs / US_PER_MS), message);
    };
    const context = { cluster: () => this.cluster, oneIn: options.oneIn ?? 1, fail };
    this.#checkers = (options.checkers ?? CHECKERS).map((make) => make(context));
    this.cluster = new Cluster({ ...options, trace: this.trace, observers: [...this.#checkers, ...(options.observers ?? [])] });
  }

  get nowMs(): number {
    return Math.floor(this.cluster.time.nowUs / US_PER_MS);
  }

  /** Runs up to a virtual time, slice by slice; `look` may end it early by answering true. */
  until(virtualMs: number, sliceMs = 1_000, look: () => boolean = () => false): void {
    while (this.nowMs < virtualMs) {
      this.cluster.time.run(Math.min(virtualMs, this.nowMs + sliceMs) * US_PER_MS);
      if (look()) return;
    }
  }

  /** Ends early once everybody is `done`, nothing is queued, nothing lives or is about to end, every job has ended and every Edge that comes back is back, and it stays so for a moment. */
  untilQuiet(virtualMs: number, done: () => boolean): void {
    const { nodes, ground } = this.cluster;
    let quiet = 0;
    this.until(virtualMs, QUIET_MS / 2, () => {
      const isQuiet = done() && ground.commands.store.size === 0 && nodes.every(isAtRest) && this.#openJobs() === 0;
      quiet = isQuiet ? quiet + 1 : 0;
      return quiet === 3;
    });
  }

  #openJobs(): number {
    const { shards, ground } = this.cluster;
    const jobs = shards.flatMap((shard) => ground.store.lastOfEach(ground.server.nowMs, { shard, kind: 'job' }));
    return jobs.filter((entry) => (commitOf(entry)?.commit.state as JobState | undefined)?.status !== 'ended').length;
  }

  check(): void {
    for (const checker of this.#checkers) checker.atEnd?.();
  }

  result(violation: Violation | null): RunResult {
    return { seed: this.cluster.o.seed, hash: this.trace.hash, steps: this.trace.steps, virtualMs: this.nowMs, violation };
  }
}

/** What has no process any more may still be on its way to its end, which its Edge is to say. */
const isAtRest = ({ machine, process, edge, dead }: Node): boolean => machine.live === 0 && (dead || (process.alive && edge.ready && edge.liveCount === 0));

/** Any exception of the code under test is a finding as well. */
export const guarded = (run: Run, body: () => void): RunResult => {
  try {
    body();
    return run.result(null);
  } catch (thrown) {
    if (thrown instanceof Violation) return run.result(thrown);
    throw new Error(`seed ${run.cluster.o.seed}, ${run.nowMs} ms, step ${run.trace.steps}: ${(thrown as Error).message}`, { cause: thrown });
  }
};
