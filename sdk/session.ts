/**
 * What one connected client shares among its handles: the two planes, the feed of commits, and the few facts that save
 * round trips (shards, newest Edge) or make lists read the client's own writes (newest sequence per shard).
 */
import type { ClientKey, EdgeName, ProjectName, Shard } from '#bus/ids.ts';
import type { Ask } from './create/create-waiter.ts';
import type { GroupOptions } from './create/run.ts';
import type { Group } from './group.ts';
import { ApiClient } from './transport/api-client.ts';
import type { Bus } from './transport/bus.ts';
import { type Clock, systemClock } from './transport/clock.ts';
import { Feed } from './transport/feed.ts';
import { Losses } from './transport/losses.ts';
import { OpClient } from './transport/op-client.ts';
import { type WaitListener, Waits } from './transport/waits.ts';

/** `askWith`: how they are ordered under a key. */
export type ForkOrder = { readonly key: ClientKey | undefined; readonly count: number; readonly askWith: (key: ClientKey) => Ask };

/** Of round-trip times, as TCP does it. */
const SMOOTHING = 1 / 8;

export class Session {
  readonly project: ProjectName;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly api: ApiClient;
  readonly losses: Losses;
  readonly ops: OpClient;
  readonly feed: Feed;
  /** Edge of the newest assignment seen: a first guess where the next sandbox will be. */
  edgeHint: EdgeName | undefined;
  /** Makes forks; the client's, given here because handles make them and are made by it. */
  makeForks: (order: ForkOrder, wait: Omit<GroupOptions, 'count' | 'mode'>) => Promise<Group> = () => Promise.reject(new Error('this session has no client'));
  /** What single creates take at the moment, smoothed; 0 before the first. */
  #createMs = 0;
  readonly #seen = new Map<Shard, number>();
  #shards: readonly Shard[] | undefined;

  constructor(bus: Bus, project: ProjectName, clock: Clock = systemClock, onWait?: WaitListener) {
    const waits = onWait && new Waits(clock, onWait);
    this.bus = bus;
    this.project = project;
    this.clock = clock;
    this.api = new ApiClient(bus, clock, project, waits);
    this.losses = new Losses(bus, clock, this.api);
    this.ops = new OpClient(bus, clock, project, this.losses, waits);
    this.feed = new Feed(bus);
  }

  /** Shards of the event log; asked for once, they change only when a platform is set up anew. */
  async shardCount(options: { readonly fresh?: boolean; readonly giveUpAfterMs?: number; readonly signal?: AbortSignal | undefined } = {}): Promise<number> {
    if (!this.#shards || options.fresh)
      this.#shards = (await this.api.call('info', {}, { giveUpAfterMs: options.giveUpAfterMs, signal: options.signal })).shards;
    return this.#shards.length;
  }

  get createMs(): number {
    return this.#createMs;
  }

  sawCreate(tookMs: number): void {
    this.#createMs = this.#createMs === 0 ? tookMs : this.#createMs + (tookMs - this.#createMs) * SMOOTHING;
  }

  saw(shard: Shard, sequence: number | undefined): void {
    if (sequence !== undefined && sequence > (this.#seen.get(shard) ?? 0)) this.#seen.set(shard, sequence);
  }

  /** Newest stream sequence per shard that this client has seen. */
  get seen(): Record<string, number> {
    return Object.fromEntries(this.#seen);
  }
}
