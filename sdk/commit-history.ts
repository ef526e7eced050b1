/**
 * Every commit of one sandbox, each once and in order: pages of its history first, then live. A gap or a lag in the live
 * ones is closed from the history, which is the truth.
 */
import type { ApiResponse } from '#bus/api/schema.ts';
import type { DsecError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { ENDED_STATUSES, type SandboxStatus } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { SDK_LIMITS } from './limits.ts';
import type { Session } from './session.ts';
import { Latch } from './transport/latch.ts';

export type StoredCommit = ApiResponse<'events'>['commits'][number];
export type HistoryOptions = {
  /** Give only later commits than this version. */
  readonly afterVersion?: number | undefined;
  /** Go on with live commits until the sandbox has ended. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
};

export async function* commitHistory(session: Session, id: SandboxId, options: HistoryOptions = {}): AsyncGenerator<StoredCommit> {
  let version = options.afterVersion ?? 0;
  if (!options.follow) {
    yield* pages(session, id, version, options.signal);
    return;
  }
  const live = new LiveCommits(session, id);
  try {
    for (let behind = true; ; behind = !live.takeAfter(version)) {
      for await (const commit of behind ? pages(session, id, version, options.signal) : []) {
        version = commit.version;
        yield commit;
        if (hasEnded(commit)) return;
      }
      for (let commit = live.takeAfter(version); commit; commit = live.takeAfter(version)) {
        version = commit.version;
        yield commit;
        if (hasEnded(commit)) return;
      }
      await live.news(options.signal);
    }
  } finally {
    live.close();
  }
}

async function* pages(session: Session, id: SandboxId, after: number, signal: AbortSignal | undefined): AsyncGenerator<StoredCommit> {
  for (let version = after, more = true; more; ) {
    const page = await session.api.call('events', { id, afterVersion: version }, { signal });
    yield* page.commits;
    version = page.commits.at(-1)?.version ?? version;
    more = page.more && page.commits.length > 0;
  }
}

const hasEnded = (commit: StoredCommit): boolean => ENDED_STATUSES.has(commit.state['status'] as SandboxStatus);

/** A bounded buffer of what arrives; what does not fit is read from the history instead. */
class LiveCommits {
  readonly #wake = new Latch();
  readonly #stop: readonly (() => void)[];
  #buffer: StoredCommit[] = [];
  #failure: DsecError | undefined;

  constructor(session: Session, id: SandboxId) {
    const follower = {
      onCommit: (commit: Omit<StoredCommit, 'streamSequence'>, message: { sequence(): number | undefined }) => {
        if (this.#buffer.length < SDK_LIMITS.eventsBuffered) this.#buffer.push({ ...commit, streamSequence: message.sequence() ?? 0 });
        this.#wake.open('news');
      },
      onFailure: (error: DsecError) => {
        this.#failure = error;
        this.#wake.open('failed');
      },
    };
    this.#stop = [session.feed.follow(sandboxAddress(session.project, id), follower), session.bus.onReconnect(() => this.#wake.open('reconnected'))];
  }

  /** The next commit when it is here; undefined when it is not, although later ones may be. */
  takeAfter(version: number): StoredCommit | undefined {
    this.#buffer = this.#buffer.filter((commit) => commit.version > version);
    return this.#buffer.find((commit) => commit.version === version + 1);
  }

  async news(signal: AbortSignal | undefined): Promise<void> {
    if (this.#failure) throw this.#failure;
    await this.#wake.wait(SDK_LIMITS.catchUpSlowestMs, signal);
    if (this.#failure) throw this.#failure;
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }
}
