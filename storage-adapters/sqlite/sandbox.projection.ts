/**
 * Read model of sandboxes, folded from commits: get by id, list by label and status, and how far it has got.
 *
 * INV-PROJ: rows and the sequence up to which they are folded change in the same transaction, so the file is always
 * exactly the fold of a prefix of each shard's stream, whenever the process dies. Truth is the stream; the file may be
 * deleted at any time. One file serves all shards; sequences are counted per shard.
 */
import type Database from 'better-sqlite3';
import type { ApiResponse, SandboxView } from '#bus/api/schema.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName, SandboxId, Shard } from '#bus/ids.ts';
import { safeParse } from '#bus/proof.ts';
import { SandboxState, type SandboxStatus } from '#bus/sandbox/state.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { isRuined, openDatabase, removeDatabase } from './database.ts';
import { PROJECTION_LIMITS } from './limits.ts';
import { listSandboxes } from './list.ts';
import { Waiters } from './waiters.ts';

/** What a stream holds, in its order: a commit, or the tombstone of an actor. */
export type ProjectionEntry =
  | { readonly kind: 'commit'; readonly stored: StoredCommit }
  | { readonly kind: 'forgotten'; readonly address: ActorAddress; readonly sequence: number };

export type StreamBounds = { readonly lastSequence: number; readonly createdAt: string };
export type ListQuery = {
  readonly project: ProjectName;
  /** Every one of them must match. */
  readonly labels: Readonly<Record<string, string>>;
  /** Any of them; empty means all. */
  readonly statuses: readonly SandboxStatus[];
  /** By shard: only rows that changed after this sequence. A shard that is not named is not filtered. */
  readonly changedAfter?: Sequences;
  /** Id after which the page begins. */
  readonly after: string | undefined;
  readonly limit: number;
};
/** Stream sequence by shard. */
export type Sequences = Readonly<Record<string, number>>;
export type SandboxPage = ApiResponse<'list'>;
type Row = { readonly version: number; readonly sequence: number; readonly state: string };

export class SandboxProjection {
  readonly #path: string;
  readonly #waiters = new Waiters();
  readonly #asOf = new Map<string, number>();
  #db: Database.Database;
  #statements: Statements;
  /** Told when a read finds the file damaged; whoever feeds it can have it built anew. */
  onRuined: ((error: unknown) => void) | undefined;

  /** Opens the file at `path`, or makes it anew where it is missing, damaged or of another layout. */
  static open(path: string): SandboxProjection {
    return new SandboxProjection(path);
  }

  private constructor(path: string) {
    this.#path = path;
    this.#db = openDatabase(path).db;
    this.#statements = prepare(this.#db);
    this.#readSequences();
  }

  /**
   * Prepares a shard to be fed and answers the sequence to go on from. Its rows are thrown away when they cannot be a
   * prefix of this stream: another stream, rows ahead of it, or nobody fed them for so long that a tombstone may be missed.
   */
  begin(shard: Shard, { lastSequence, createdAt }: StreamBounds, nowMs: number): number {
    const known = this.#statements.stream.get(shard) as { created_at: string; sequence: number; fed_at: number } | undefined;
    const isSound = known?.created_at === createdAt && known.sequence <= lastSequence && nowMs - known.fed_at <= PROJECTION_LIMITS.offlineMs;
    if (!isSound) this.#startOver(shard, createdAt, nowMs);
    return (this.#asOf.get(shard) ?? 0) + 1;
  }

  /**
   * Folds a run of one shard's stream, all or nothing. What is already folded is passed over, so it may be given again.
   * Answers the commits whose state is none; their sandboxes keep their former row.
   */
  apply(shard: Shard, entries: readonly ProjectionEntry[], nowMs: number): readonly StoredCommit[] {
    const unreadable: StoredCommit[] = [];
    let sequence = this.#asOf.get(shard);
    if (sequence === undefined) throw new Error(`shard ${shard} was not begun`);
    this.#db.transaction(() => {
      const fresh = entries.filter((entry) => sequenceOf(entry) > (sequence ?? 0));
      for (const { forgotten, commits } of byActor(fresh)) {
        if (forgotten) this.#remove(forgotten);
        while (commits.length > 0) {
          const newest = commits.pop() as StoredCommit;
          if (this.#upsert(newest)) break; // what came before it would only be written over
          unreadable.push(newest);
        }
      }
      sequence = Math.max(sequence ?? 0, ...fresh.slice(-1).map(sequenceOf));
      this.#statements.advance.run({ shard, sequence, fedAt: nowMs });
    })();
    this.#asOf.set(shard, sequence);
    this.#waiters.reached(this.asOf());
    return unreadable;
  }

  get(project: ProjectName, id: SandboxId): SandboxView | null {
    const row = this.#read(() => this.#statements.get.get(project, id)) as Row | undefined;
    return row ? viewOf(row) : null;
  }

  /** One page in id order, with how far the projection had got when it was read. */
  list(query: ListQuery): SandboxPage {
    const limit = Math.min(Math.max(1, query.limit), PROJECTION_LIMITS.pageRows);
    const rows = this.#read(() => listSandboxes(this.#db, query, limit + 1)) as Row[];
    const sandboxes = rows.slice(0, limit).map(viewOf);
    const last = sandboxes.at(-1);
    return { sandboxes, next: rows.length > limit && last ? last.state.id : null, asOf: { ...this.asOf() } };
  }

  /** Sequence up to which each shard is folded. */
  asOf(): Sequences {
    return Object.fromEntries(this.#asOf);
  }

  /** Whether a call waits for it to get further. */
  get isAwaited(): boolean {
    return this.#waiters.isAny;
  }

  /** Resolves once each named shard is folded up to its sequence; rejects with DEADLINE_EXCEEDED after `timeoutMs`. */
  async waitFor(atLeast: Sequences, timeoutMs: number): Promise<void> {
    for (const shard of Object.keys(atLeast))
      if (!this.#asOf.has(shard)) throw DsecError.of('INVALID_ARGUMENT', `atLeast: there is no shard "${shard}"; ask the verb info which there are`);
    await this.#waiters.wait(atLeast, this.asOf(), timeoutMs);
  }

  /** Throws all rows away and begins with an empty file: what was folded cannot be trusted any more. */
  reset(): void {
    this.#db.close();
    removeDatabase(this.#path);
    this.#db = openDatabase(this.#path).db;
    this.#statements = prepare(this.#db);
    for (const shard of this.#asOf.keys()) this.#asOf.set(shard, 0);
  }

  close(): void {
    this.#waiters.close();
    this.#db.close();
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      if (!isRuined(cause)) throw cause;
      this.onRuined?.(cause);
      throw DsecError.of('API_UNAVAILABLE', 'the list of sandboxes is damaged and is being built anew; ask again', {
        cause,
        outcome: 'not_applied',
        retry: 'later',
      });
    }
  }

  #startOver(shard: Shard, createdAt: string, nowMs: number): void {
    this.#db.transaction(() => {
      this.#statements.removeLabelsOfShard.run(shard);
      this.#statements.removeShard.run(shard);
      this.#statements.begin.run({ shard, createdAt, fedAt: nowMs });
    })();
    this.#asOf.set(shard, 0);
  }

  #upsert({ address, sequence, commit }: StoredCommit): boolean {
    const parsed = safeParse(SandboxState, commit.state);
    if (!parsed.success) return false;
    const { status, edge, createdAt, spec } = parsed.data;
    const { project, id, shard } = address;
    const row = { project, id, shard, edge, status, createdAt, version: commit.version, sequence, state: JSON.stringify(parsed.data) };
    // A sandbox's labels are those it was born with.
    const isKnown = this.#statements.update.run(row).changes > 0;
    if (isKnown) return true;
    this.#statements.insert.run(row);
    for (const [key, value] of Object.entries(spec.labels)) this.#statements.label.run({ project, key, value, id });
    return true;
  }

  #remove({ project, id }: ActorAddress): void {
    this.#statements.removeLabels.run(project, id);
    this.#statements.remove.run(project, id);
  }

  #readSequences(): void {
    for (const { shard, sequence } of this.#statements.streams.all() as { shard: string; sequence: number }[]) this.#asOf.set(shard, sequence);
  }
}

const sequenceOf = (entry: ProjectionEntry): number => (entry.kind === 'commit' ? entry.stored.sequence : entry.sequence);

/** What a run of the stream says of each sandbox: whether it was forgotten, and its commits since, in their order. */
type Told = { readonly forgotten: ActorAddress | undefined; readonly commits: StoredCommit[] };
const byActor = (entries: readonly ProjectionEntry[]): Iterable<Told> => {
  const told = new Map<string, Told>();
  for (const entry of entries) {
    const address = entry.kind === 'commit' ? entry.stored.address : entry.address;
    if (address.kind !== 'sandbox') continue;
    const key = `${address.project} ${address.id}`;
    if (entry.kind === 'forgotten') told.set(key, { forgotten: address, commits: [] });
    else if (!told.get(key)?.commits.push(entry.stored)) told.set(key, { forgotten: undefined, commits: [entry.stored] });
  }
  return told.values();
};

const viewOf = ({ version, sequence, state }: Row): SandboxView => ({
  version,
  streamSequence: sequence,
  state: JSON.parse(state) as SandboxState,
  lost: false,
});

type Statements = ReturnType<typeof prepare>;
const prepare = (db: Database.Database) => ({
  streams: db.prepare('SELECT shard, sequence FROM streams'),
  stream: db.prepare('SELECT created_at, sequence, fed_at FROM streams WHERE shard = ?'),
  begin: db.prepare('INSERT OR REPLACE INTO streams (shard, created_at, sequence, fed_at) VALUES (@shard, @createdAt, 0, @fedAt)'),
  advance: db.prepare('UPDATE streams SET sequence = @sequence, fed_at = @fedAt WHERE shard = @shard'),
  get: db.prepare('SELECT version, sequence, state FROM sandboxes WHERE project = ? AND id = ?'),
  insert: db.prepare(
    `INSERT INTO sandboxes (project, id, shard, edge, status, created_at, version, sequence, state)
     VALUES (@project, @id, @shard, @edge, @status, @createdAt, @version, @sequence, @state)`,
  ),
  update: db.prepare('UPDATE sandboxes SET status = @status, version = @version, sequence = @sequence, state = @state WHERE project = @project AND id = @id'),
  label: db.prepare('INSERT OR IGNORE INTO labels (project, key, value, id) VALUES (@project, @key, @value, @id)'),
  remove: db.prepare('DELETE FROM sandboxes WHERE project = ? AND id = ?'),
  removeLabels: db.prepare('DELETE FROM labels WHERE project = ? AND id = ?'),
  removeShard: db.prepare('DELETE FROM sandboxes WHERE shard = ?'),
  removeLabelsOfShard: db.prepare('DELETE FROM labels WHERE (project, id) IN (SELECT project, id FROM sandboxes WHERE shard = ?)'),
});
