/**
 * The Edge actors as one process knows them: folded from their commits as they are republished, checked against the log now and
 * then. Holds no truth; it is full again a moment after its start.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { EdgeState } from '#bus/edge/schema.ts';
import { decodeCommit } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import { outFilter, SYSTEM_PROJECT, SYSTEM_SHARD } from '#bus/subjects.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Log } from '../log/log.ts';

export const EDGE_STATES_LIMITS = {
  /** What was not heard is read from the log within this time. */
  refreshMs: 5_000,
} as const;

export type EdgeStatesOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly log: Log;
  /** Told of every state that is newer than what was known. */
  readonly onChange?: (state: EdgeState) => void;
};

type Known = { readonly version: number; readonly state: EdgeState };
const EDGES = { shard: SYSTEM_SHARD, project: SYSTEM_PROJECT, kind: 'edge', home: '_' } as const;

export class EdgeStates {
  readonly #o: EdgeStatesOptions;
  readonly #known = new Map<EdgeName, Known>();
  #subscription: { unsubscribe(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: EdgeStatesOptions) {
    this.#o = options;
  }

  /** Resolves when everything the log held is known. */
  static async open(options: EdgeStatesOptions): Promise<EdgeStates> {
    const states = new EdgeStates(options);
    states.#subscription = options.connection.subscribe(outFilter(EDGES), {
      callback: (error, message) => {
        if (!error && message.data.byteLength > 0) states.#heard(message.data);
      },
    });
    await states.#refresh();
    states.#timer = setInterval(() => {
      states.#refresh().catch((thrown: unknown) => options.log.debug('edges.not_refreshed', { message: (thrown as Error).message }));
    }, EDGE_STATES_LIMITS.refreshMs);
    return states;
  }

  get(edge: EdgeName): EdgeState | undefined {
    return this.#known.get(edge)?.state;
  }

  all(): EdgeState[] {
    return [...this.#known.values()].map(({ state }) => state);
  }

  close(): void {
    this.#subscription?.unsubscribe();
    clearInterval(this.#timer);
  }

  #heard(data: Uint8Array): void {
    try {
      const commit = decodeCommit(data);
      this.#learn({ version: commit.version, state: readState('edge', commit.state, commit.schema) });
    } catch (thrown) {
      this.#o.log.warn('edges.unreadable', { message: (thrown as Error).message });
    }
  }

  async #refresh(): Promise<void> {
    for (const { commit } of await this.#o.eventLog.lastOfEach(EDGES))
      this.#learn({ version: commit.version, state: readState('edge', commit.state, commit.schema) });
  }

  #learn(news: Known): void {
    const { name } = news.state;
    if (news.version <= (this.#known.get(name)?.version ?? 0)) return;
    this.#known.set(name, news);
    this.#o.onChange?.(news.state);
  }
}
