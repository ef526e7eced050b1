/**
 * What happens to the sandboxes of a project: each commit once, in order per sandbox, whatever is lost on the way.
 *
 * Live commits come from the bus, where they may be lost (a reconnect, a slow reader) and where nobody waits for a late
 * subscriber. What is missing shows as a gap between versions, or in the catch-up, which asks for everything that changed
 * since the last one; both are closed from the sandboxes' histories, which are the truth.
 */
import { type Commit, decodeCommit } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type EdgeName, type SandboxId, parseSandboxId } from '#bus/ids.ts';
import { safeParse } from '#bus/proof.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES, SandboxState } from '#bus/sandbox/state.ts';
import { outFilter } from '#bus/subjects.ts';
import { type StoredCommit, commitHistory } from './commit-history.ts';
import { SDK_LIMITS } from './limits.ts';
import type { Session } from './session.ts';
import type { BusMessage } from './transport/bus.ts';
import { Latch } from './transport/latch.ts';
import { newestStates } from './transport/states.ts';
import { translate } from './transport/retry.ts';

export type WatchOptions = {
  /** Only sandboxes with every one of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Ends the iteration with CANCELLED. */
  readonly signal?: AbortSignal | undefined;
};

export type SandboxChange = {
  /** `found`: it was there when the watch's first list was read, and this is its state then. `changed`: one commit. */
  /** `lost`: its Edge was declared lost after the commit of that version, and this is what became of it. */
  readonly kind: 'found' | 'changed' | 'lost';
  readonly id: SandboxId;
  /** Number of the commit in the sandbox's life: without gaps from one change of it to the next. */
  readonly version: number;
  readonly state: SandboxState;
  /** What happened; empty for `found` and `lost`. */
  readonly events: readonly { readonly type: string; readonly [field: string]: unknown }[];
};

const NOT_ENDED = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));

/** Begins with every sandbox that has not ended, then goes on until it is left or its signal aborts. */
export async function* watchSandboxes(session: Session, options: WatchOptions = {}): AsyncGenerator<SandboxChange> {
  const live = new LiveProject(session);
  const watch = new Watch(session, options);
  try {
    yield* watch.begin();
    live.fallBehindIn(SDK_LIMITS.catchUpEveryMs); // what the first list could not show yet
    for (;;) {
      const next = live.take();
      if (next) yield* watch.accept(next.commit, next.sequence);
      else if (live.hasLosses) yield* watch.losses(live.takeLosses());
      else if (live.isBehind) {
        live.beginCatchUp();
        yield* watch.catchUp();
      } else await live.news(options.signal);
    }
  } finally {
    live.close();
  }
}

class Watch {
  readonly #session: Session;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal | undefined;
  /** Newest version given, in the order of the newest change. */
  readonly #known = new Map<SandboxId, number>();
  /** Those whose loss was given. */
  readonly #lost = new Set<SandboxId>();
  /** Stream sequence per shard before which everything was there already. */
  #begunAt: Readonly<Record<string, number>> = {};
  /** Stream sequence per shard up to which nothing can be missing. */
  #cursor: Readonly<Record<string, number>> = {};

  constructor(session: Session, { labels = {}, signal }: WatchOptions) {
    this.#session = session;
    this.#labels = labels;
    this.#signal = signal;
  }

  async *begin(): AsyncGenerator<SandboxChange> {
    for await (const { version, state } of this.#changed(NOT_ENDED)) {
      this.#note(state.id, version);
      yield { kind: 'found', id: state.id, version, state, events: [] };
    }
    this.#begunAt = this.#cursor;
  }

  async *catchUp(): AsyncGenerator<SandboxChange> {
    for await (const { version, state } of this.#changed([])) if (version > (this.#known.get(state.id) ?? 0)) yield* this.#missing(state.id);
  }

  /** What the apiserver says of everything that this watch knows on those Edges; each loss once. */
  async *losses(edges: ReadonlySet<EdgeName>): AsyncGenerator<SandboxChange> {
    const ids = [...this.#known.keys()].filter((id) => edges.has(parseSandboxId(id).edge) && !this.#lost.has(id));
    for await (const view of newestStates(this.#session, ids, { signal: this.#signal })) {
      if (!view?.lost) continue;
      this.#lost.add(view.state.id);
      yield { kind: 'lost', id: view.state.id, version: view.version, state: view.state, events: [] };
    }
  }

  async *accept(commit: Commit, sequence: number): AsyncGenerator<SandboxChange> {
    const id = commit.actorId as SandboxId;
    const known = this.#known.get(id) ?? 0;
    if (commit.version <= known) return;
    const state = safeParse(SandboxState, commit.state);
    if (!state.success || !this.#matches(state.data)) return;
    if (commit.version > known + 1) yield* this.#missing(id);
    else yield* this.#give({ ...commit, streamSequence: sequence });
  }

  /** Closes a gap from the history. What was there before the watch began is not news. */
  async *#missing(id: SandboxId): AsyncGenerator<SandboxChange> {
    const begunAt = this.#begunAt[parseSandboxId(id).shard] ?? 0;
    const history = commitHistory(this.#session, id, { afterVersion: this.#known.get(id) ?? 0, signal: this.#signal });
    try {
      for await (const commit of history)
        if (commit.streamSequence > begunAt) yield* this.#give(commit);
        else this.#note(id, commit.version);
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.code !== 'SANDBOX_NOT_FOUND') throw thrown; // forgotten meanwhile
    }
  }

  *#give(commit: StoredCommit): Generator<SandboxChange> {
    const id = commit.actorId as SandboxId;
    if (commit.version <= (this.#known.get(id) ?? 0)) return;
    this.#note(id, commit.version);
    this.#session.saw(parseSandboxId(id).shard, commit.streamSequence || undefined);
    yield { kind: 'changed', id, version: commit.version, state: SandboxState.parse(commit.state), events: commit.events };
  }

  /** Newest states of what changed since the last time, page by page. */
  async *#changed(statuses: typeof NOT_ENDED) {
    const since = { labels: { ...this.#labels }, statuses, changedAfter: { ...this.#cursor }, limit: SDK_LIMITS.watchPage };
    let cursor: Record<string, number> | undefined;
    for (let after: string | null | undefined; after !== null; ) {
      const request = { ...since, atLeast: this.#session.seen, ...(after === undefined ? {} : { after }) };
      const page = await this.#session.api.call('list', request, { signal: this.#signal });
      cursor ??= page.asOf; // later pages show more, but earlier ones do not
      yield* page.sandboxes;
      after = page.next;
    }
    this.#cursor = cursor ?? this.#cursor;
  }

  #matches({ spec }: SandboxState): boolean {
    return Object.entries(this.#labels).every(([key, value]) => spec.labels[key] === value);
  }

  /** The least recently changed are forgotten first: by far most of them have ended. */
  #note(id: SandboxId, version: number): void {
    this.#known.delete(id);
    this.#known.set(id, version);
    if (this.#known.size <= SDK_LIMITS.watchKnown) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      this.#lost.delete(oldest);
      break;
    }
  }
}

/** The project's commits as they arrive. Bounded: what does not fit is left out, and the watch is behind. */
class LiveProject {
  readonly #wake = new Latch();
  readonly #stop: readonly (() => void)[];
  readonly #buffer: { readonly commit: Commit; readonly sequence: number }[] = [];
  readonly #lostEdges = new Set<EdgeName>();
  #behind = false;
  #failure: DsecError | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: Session) {
    const { project } = session;
    const stopFeed = session.bus.subscribe(
      outFilter({ project, kind: 'sandbox' }),
      (message) => this.#take(message),
      (failure) => {
        this.#failure = translate(failure, { what: 'watching sandboxes', unavailable: 'API_UNAVAILABLE' });
        this.#wake.open('failed');
      },
    );
    this.#stop = [stopFeed, session.bus.onReconnect(() => this.#fallBehind()), session.losses.onLoss('*', (edge) => this.#onLoss(edge))];
  }

  get hasLosses(): boolean {
    return this.#lostEdges.size > 0;
  }

  takeLosses(): ReadonlySet<EdgeName> {
    const edges = new Set(this.#lostEdges);
    this.#lostEdges.clear();
    return edges;
  }

  get isBehind(): boolean {
    return this.#behind;
  }

  take(): { readonly commit: Commit; readonly sequence: number } | undefined {
    return this.#buffer.shift();
  }

  async news(signal: AbortSignal | undefined): Promise<void> {
    if (this.#failure) throw this.#failure;
    await this.#wake.wait(SDK_LIMITS.watchCatchUpMs, signal);
    if (this.#failure) throw this.#failure;
  }

  /** What is lost from now on counts for the next one. */
  beginCatchUp(): void {
    this.#behind = false;
    this.fallBehindIn(SDK_LIMITS.watchCatchUpMs);
  }

  /** A loss that nobody noticed is looked for then. */
  fallBehindIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fallBehind(), ms);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const stop of this.#stop) stop();
  }

  #onLoss(edge: EdgeName): void {
    this.#lostEdges.add(edge);
    this.#wake.open('news');
  }

  #fallBehind(): void {
    this.#behind = true;
    this.#wake.open('reconnected');
  }

  #take(message: BusMessage): void {
    if (message.data.byteLength === 0) return; // the tombstone of a forgotten sandbox
    if (this.#buffer.length >= SDK_LIMITS.watchBuffered) return this.#fallBehind();
    try {
      this.#buffer.push({ commit: decodeCommit(message.data), sequence: message.sequence() ?? 0 });
    } catch (thrown) {
      if (!(thrown instanceof DsecError)) throw thrown;
      this.#failure = thrown; // a commit of a newer version must not be passed over in silence
    }
    this.#wake.open('news');
  }
}
