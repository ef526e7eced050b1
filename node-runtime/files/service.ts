/**
 * Files of one sandbox, as the Edge serves them: short operations by a pooled worker, streams by a worker of their own. @paper §3.3
 *
 * Decides who is asked, how long, and what a repeated call means. What a file is and may is decided inside the sandbox, by the
 * kernel, for the user that is named; no path is looked at here.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import { bytesOfText } from '#bus/op/byte-path.ts';
import type { EntryRecord } from '#bus/op/file-records.ts';
import type { FileEntry, FileOpName, FileStream } from '#bus/op/files.ts';
import type { OpParsed, OpResponse } from '#bus/op/schema.ts';
import { Download } from './download.ts';
import { entryOf } from './exchange.ts';
import { KeptAnswers } from './kept-answers.ts';
import { FILES_LIMITS } from './limits.ts';
import { type Session, type SessionBudget, Sessions } from './sessions.ts';
import { Upload } from './upload.ts';
import type { Pairs } from './wire.ts';
import { leaving, WorkerPool } from './worker-pool.ts';

export type FileServiceOptions = {
  /** Where the sandbox's agent listens. */
  readonly socketPath: string;
  /** Who works where a request names nobody. */
  readonly defaultUser: string;
  readonly budget: SessionBudget;
  readonly clock: Clock;
  readonly onActivity: () => void;
};

export type FileResult<O extends FileOpName> = { readonly data: OpResponse<O>; readonly body: readonly Uint8Array[] };
type Handlers = { readonly [O in FileOpName]: (request: OpParsed<O>, body: Uint8Array) => Promise<FileResult<O>> };

const UPLOADS: ReadonlySet<FileStream['what']> = new Set(['write', 'append', 'unpack']);

export class FileService {
  readonly #o: FileServiceOptions;
  readonly #pool: WorkerPool;
  readonly #sessions: Sessions;
  readonly #kept = new KeptAnswers();

  constructor(options: FileServiceOptions) {
    this.#o = options;
    this.#pool = new WorkerPool(options.socketPath);
    this.#sessions = new Sessions(options.budget);
  }

  handle<O extends FileOpName>(op: O, request: OpParsed<O>, body: Uint8Array): Promise<FileResult<O>> {
    this.#o.onActivity();
    return this.#handlers[op](request, body);
  }

  close(): void {
    this.#sessions.closeAll(leaving());
    this.#pool.close();
  }

  readonly #handlers: Handlers = {
    fileStat: async ({ path, follow, user }) => {
      const { entry } = await this.#short(user, 'stat', `look at ${path}`, { path: raw(path), follow }, 'entry');
      return plain({ entry: known(entry) });
    },
    fileRead: async ({ path, offset, maxBytes, devices, user }) => {
      // one byte more than is asked for tells whether anything follows
      const { entry, bytes } = await this.#short(user, 'read', `read ${path}`, { path: raw(path), offset, limit: maxBytes + 1, devices }, 'end');
      const all = Buffer.concat(bytes);
      return { data: { entry: known(entry), eof: all.byteLength <= maxBytes }, body: [all.subarray(0, maxBytes)] };
    },
    fileWrite: async (request, body) => {
      const { path, mode, parents, user } = request;
      const { entry } = await this.#once(request, body, () => this.#short(user, 'write', `write ${path}`, { path: raw(path), mode, parents }, 'entry', body));
      return plain({ entry: known(entry) });
    },
    fileMkdir: async (request) => {
      const { path, mode, parents, user } = request;
      const { entry } = await this.#once(request, NO_BYTES, () =>
        this.#short(user, 'mkdir', `make directory ${path}`, { path: raw(path), mode, parents }, 'entry'),
      );
      return plain({ entry: known(entry) });
    },
    fileMove: async (request) => {
      const { from, to, replace, user } = request;
      await this.#once(request, NO_BYTES, () => this.#short(user, 'move', `move ${from} to ${to}`, { from: raw(from), to: raw(to), replace }, 'end'));
      return plain({});
    },
    fileRemove: async (request) => {
      const { path, recursive, user } = request;
      const { entries } = await this.#once(request, NO_BYTES, () => this.#short(user, 'remove', `remove ${path}`, { path: raw(path), recursive }, 'end'));
      return plain({ removed: entries });
    },
    fileOpen: async ({ session, stream, user }) => {
      const opened = await this.#sessions.open(session, () => this.#openStream(user ?? this.#o.defaultUser, stream));
      return plain({ entry: await this.#begin(session, opened) });
    },
    filePull: async ({ session, ...pull }) => {
      const { end, body } = await this.#sessions.use(session, (held) => download(held).pull(pull));
      return { data: { end }, body };
    },
    filePush: async ({ session, offset }, body) => plain({ nextOffset: await this.#sessions.use(session, (held) => upload(held).push(offset, body)) }),
    fileCommit: async ({ session, totalBytes }) => {
      const { entry, end } = await this.#sessions.use(session, (held) => upload(held).commit(totalBytes));
      return plain({ entry: entry ? entryOf(entry) : null, end: end ?? null });
    },
    fileClose: async ({ session }) => {
      this.#sessions.close(session);
      return plain({});
    },
  };

  #short(
    user: string | undefined,
    request: 'stat' | 'read' | 'write' | 'mkdir' | 'move' | 'remove',
    what: string,
    pairs: Pairs,
    ends: 'entry' | 'end',
    body?: Uint8Array,
  ) {
    const silentMs = request === 'remove' ? FILES_LIMITS.silentRemovalMs : FILES_LIMITS.silentWorkerMs;
    return this.#pool.run(user ?? this.#o.defaultUser, { request, pairs, what, ends, silentMs, ...(body === undefined ? {} : { body }) });
  }

  /** What cannot be read is told by the opening itself, and leaves no session. */
  async #begin(name: string, session: Session): Promise<FileEntry | null> {
    if (session.kind === 'upload') return null;
    try {
      const entry = await session.stream.started();
      return entry ? entryOf(entry) : null;
    } catch (error) {
      this.#sessions.close(name);
      throw error;
    }
  }

  #once<T>(request: object, body: Uint8Array, work: () => Promise<T>): Promise<T> {
    const hash = createHash('sha256').update(JSON.stringify(request)).update(body).digest('base64');
    return this.#kept.once(hash, this.#o.clock.monotonicMs(), work);
  }

  async #openStream(user: string, stream: FileStream): Promise<Session> {
    const { what, path, ...rest } = stream;
    const worker = await this.#pool.open(user);
    const words = `${what} ${path}`;
    const session: Session = UPLOADS.has(what)
      ? { kind: 'upload', stream: new Upload(worker, words) }
      : { kind: 'download', stream: new Download(worker, words, this.#o.clock, what === 'watch') };
    worker.request(what, { path: raw(path), ...rest, ...(stream.what === 'read' ? { devices: stream.limit !== undefined } : {}) });
    return session;
  }
}

const NO_BYTES = new Uint8Array(0);
const plain = <T>(data: T): { data: T; body: readonly Uint8Array[] } => ({ data, body: [] });
const raw = (path: string): Uint8Array => bytesOfText(path) ?? NO_BYTES;

const known = (entry: EntryRecord | undefined) => {
  if (!entry) throw DsecError.of('INTERNAL', 'the files worker answered without an entry');
  return entryOf(entry);
};

const wrongWay = (does: string): never => {
  throw DsecError.of('INVALID_ARGUMENT', `this file stream ${does}`);
};
const download = (session: Session): Download => (session.kind === 'download' ? session.stream : wrongWay('is written to; it cannot be pulled from'));
const upload = (session: Session): Upload => (session.kind === 'upload' ? session.stream : wrongWay('is read from; nothing can be pushed into it'));
