/**
 * Keeps a directory of projects: from their commits as they are republished, checked against the log now and then. What was
 * not heard is known after `refreshMs` at the latest: the bound within which a revocation reaches every request.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { type Commit, decodeCommit } from '#bus/envelope.ts';
import type { ProjectState } from '#bus/project/schema.ts';
import { readState } from '#bus/records.ts';
import { outFilter, SYSTEM_SHARD } from '#bus/subjects.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { Directory } from '#actors/project/directory.ts';
import type { Log } from '../log/log.ts';

export const PROJECT_FEED_LIMITS = {
  refreshMs: 5_000,
  /** Whoever is about to refuse somebody looks first; so often at most, however many are refused. */
  lookAgainMs: 1_000,
} as const;

export type ProjectFeedOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly log: Log;
  readonly onChange?: (state: ProjectState) => void;
};
const PROJECTS = { shard: SYSTEM_SHARD, kind: 'project', home: '_' } as const;

export class ProjectFeed {
  readonly directory = new Directory();
  readonly #o: ProjectFeedOptions;
  #subscription: { unsubscribe(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookedAtMs = 0;

  private constructor(options: ProjectFeedOptions) {
    this.#o = options;
  }

  /** Resolves when everything the log held is known. */
  static async open(options: ProjectFeedOptions): Promise<ProjectFeed> {
    const feed = new ProjectFeed(options);
    feed.#subscription = options.connection.subscribe(outFilter(PROJECTS), {
      callback: (error, message) => {
        if (!error && message.data.byteLength > 0) feed.#heard(message.data);
      },
    });
    await feed.#refresh();
    feed.#timer = setInterval(() => {
      feed.#refresh().catch((thrown: unknown) => options.log.debug('projects.not_refreshed', { message: (thrown as Error).message }));
    }, PROJECT_FEED_LIMITS.refreshMs);
    return feed;
  }

  /** Before somebody is refused: what was not heard may let him in. Nothing is done when it was looked at just now. */
  async lookAgain(): Promise<void> {
    if (performance.now() - this.#lookedAtMs < PROJECT_FEED_LIMITS.lookAgainMs) return;
    this.#looking ??= this.#refresh().finally(() => {
      this.#lookedAtMs = performance.now();
      this.#looking = undefined;
    });
    await this.#looking;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#subscription?.unsubscribe();
  }

  #heard(data: Uint8Array): void {
    try {
      this.#learn(decodeCommit(data));
    } catch (thrown) {
      this.#o.log.warn('project.unreadable', { message: (thrown as Error).message });
    }
  }

  async #refresh(): Promise<void> {
    for (const { commit } of await this.#o.eventLog.lastOfEach(PROJECTS)) this.#learn(commit);
  }

  #learn({ state, schema, version }: Commit): void {
    const read = readState('project', state, schema);
    if (this.directory.learn(read, version)) this.#o.onChange?.(read);
  }
}
