/**
 * Files of one sandbox. Everything happens inside it, as the named user would see it: no path, link or archive leads
 * outside. Content is bytes; `readText` decodes. @paper §3.3
 */
import { DsecError } from '#bus/errors.ts';
import { entryReader } from '#bus/op/file-records.ts';
import type { FileOpName } from '#bus/op/files.ts';
import type { OpRequest } from '#bus/op/schema.ts';
import { decodeText, toBytes } from '../exec/text.ts';
import type { OpCallOptions, OpResult } from '../transport/op-client.ts';
import { downloadFile, uploadFile } from './copy-file.ts';
import { type FileInfo, infoOf, type ListedFile, listedOf, reportOf, type TreeReport } from './info.ts';
import { SDK_FILE_LIMITS } from './limits.ts';
import { type LocalOmissions, mayKeepOwners, packLocal, unpackLocal } from './local-tree.ts';
import { type SandboxPath, wirePath } from './path.ts';
import type { FileContent } from './source.ts';
import { sendStream } from './stream-in.ts';
import { StreamOut } from './stream-out.ts';
import { type FileCallOptions, type FileTarget, given, newKey } from './target.ts';
import { FileWatch } from './watch.ts';

export type ReadOptions = FileCallOptions & {
  readonly offset?: number | undefined;
  /** At most this many bytes, 1 GiB when absent; without it a longer file is FILE_TOO_LARGE. Needed for a character device. */
  readonly limit?: number | undefined;
};
export type WriteOptions = FileCallOptions & {
  /** Permission bits; the replaced file's when absent, 0644 for a new one. */
  readonly mode?: number | undefined;
  /** Makes the directories above it that are missing. */
  readonly parents?: boolean | undefined;
};
export type TreeOptions = FileCallOptions & {
  /** Keep the owners' numbers (needs root), or give everything to the user. Default: kept inside the sandbox and in archives, not kept on this machine. */
  readonly owners?: boolean | undefined;
};

export class SandboxFiles {
  readonly #target: FileTarget;

  constructor(target: FileTarget) {
    this.#target = target;
  }

  /** The bytes of a file until its end. FIFOs and sockets are NOT_REGULAR, never waited for. */
  async read(path: SandboxPath, options: ReadOptions = {}): Promise<Uint8Array> {
    const at = wirePath(path);
    const { offset = 0, limit, user, signal } = options;
    if (limit !== undefined && limit <= SDK_FILE_LIMITS.chunkBytes)
      return (await this.#readOnce(at, { offset, maxBytes: Math.max(1, limit), devices: true }, options)).body.subarray(0, limit); // also of nothing: it must be there
    if (limit === undefined) {
      const { data, body } = await this.#readOnce(at, { offset }, options);
      if (data.eof) return body;
      if (data.entry.size > SDK_FILE_LIMITS.readBytesDefault) throw tooLarge(at, SDK_FILE_LIMITS.readBytesDefault); // known before a byte of it is carried
    }
    // from the beginning again: a file that is being replaced must not come in two halves
    const stream = await this.stream(at, { offset, limit, user, signal });
    return collect(at, stream, limit === undefined ? SDK_FILE_LIMITS.readBytesDefault : Number.POSITIVE_INFINITY);
  }

  /** As text: UTF-8, with U+FFFD for what is none. */
  async readText(path: SandboxPath, options: ReadOptions = {}): Promise<string> {
    return decodeText(await this.read(path, options));
  }

  /** A file as chunks, in constant memory. */
  async stream(path: SandboxPath, { offset, limit, ...options }: ReadOptions = {}): Promise<StreamOut> {
    return StreamOut.open(this.#target, { what: 'read', path: wirePath(path), ...given({ offset, limit }) }, options);
  }

  /** Replaces a file as a whole, or makes it: nobody sees half of it, and when it fails the old one is as it was. Links are followed. */
  async write(path: SandboxPath, content: FileContent, options: WriteOptions = {}): Promise<FileInfo> {
    const { user, signal, mode, parents } = options;
    const request = { path: wirePath(path), ...given({ mode, parents }) };
    const bytes = typeof content === 'string' || content instanceof Uint8Array ? toBytes(content) : undefined;
    if (bytes && bytes.byteLength <= SDK_FILE_LIMITS.chunkBytes)
      return infoOf((await this.#call('fileWrite', { key: newKey(), ...request, ...given({ user }) }, { body: bytes, signal })).data.entry);
    return infoOf(entryOf(await sendStream(this.#target, { what: 'write', ...request }, bytes ?? content, options)));
  }

  /** Adds to the end of a file, or makes it. Not repeated by itself when its outcome is unknown. */
  async append(path: SandboxPath, content: FileContent, options: WriteOptions = {}): Promise<FileInfo> {
    const { mode, parents } = options;
    return infoOf(entryOf(await sendStream(this.#target, { what: 'append', path: wirePath(path), ...given({ mode, parents }) }, content, options)));
  }

  /** `follow: false` tells of a link itself. */
  async stat(path: SandboxPath, { follow, user, signal }: FileCallOptions & { readonly follow?: boolean | undefined } = {}): Promise<FileInfo> {
    return infoOf((await this.#call('fileStat', { path: wirePath(path), ...given({ follow, user }) }, { signal })).data.entry);
  }

  async exists(path: SandboxPath, options: FileCallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (thrown) {
      if (thrown instanceof DsecError && (thrown.code === 'FILE_NOT_FOUND' || thrown.code === 'NOT_A_DIRECTORY')) return false;
      throw thrown;
    }
  }

  /** Entries of a directory as they come, however many there are, in no order. */
  async *entries(path: SandboxPath, options: FileCallOptions = {}): AsyncGenerator<ListedFile> {
    const reader = entryReader();
    for await (const chunk of await StreamOut.open(this.#target, { what: 'list', path: wirePath(path) }, options))
      for (const entry of reader.take(chunk)) yield listedOf(entry);
    reader.end();
  }

  /** Entries of a directory, by name. */
  async list(path: SandboxPath, options: FileCallOptions = {}): Promise<ListedFile[]> {
    const all: ListedFile[] = [];
    for await (const entry of this.entries(path, options)) all.push(entry);
    return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** With `parents`, a directory that is there already is fine. */
  async mkdir(path: SandboxPath, { user, signal, mode, parents }: WriteOptions = {}): Promise<FileInfo> {
    return infoOf((await this.#call('fileMkdir', { key: newKey(), path: wirePath(path), ...given({ mode, parents, user }) }, { signal })).data.entry);
  }

  /** Renames within one file system, at once. `replace: false`: FILE_EXISTS when there is something at `to`. */
  async move(from: SandboxPath, to: SandboxPath, { replace, user, signal }: FileCallOptions & { readonly replace?: boolean | undefined } = {}): Promise<void> {
    await this.#call('fileMove', { key: newKey(), from: wirePath(from, 'from'), to: wirePath(to, 'to'), ...given({ replace, user }) }, { signal });
  }

  /** Removes a file, an empty directory, or with `recursive` all of it; gives how many things were removed. */
  async remove(path: SandboxPath, { recursive, user, signal }: FileCallOptions & { readonly recursive?: boolean | undefined } = {}): Promise<number> {
    const request = { key: newKey(), path: wirePath(path), ...given({ recursive, user }) };
    return (await this.#call('fileRemove', request, { signal, giveUpAfterMs: SDK_FILE_LIMITS.slowCallMs })).data.removed;
  }

  /**
   * What happens in a directory, or to a file, from the moment this resolves. `recursive`: below it too; of what is made in a new directory
   * before its own watch stands, that which is still there is told as created.
   */
  watch(path: SandboxPath, { recursive, ...options }: FileCallOptions & { readonly recursive?: boolean | undefined } = {}): Promise<FileWatch> {
    return FileWatch.open(this.#target, { what: 'watch', path: wirePath(path), ...given({ recursive }) }, options);
  }

  /** A local file (by its path) or a stream into one file. Holes of a local file stay holes; its permission bits are kept unless `mode` is given. */
  async upload(source: string | Exclude<FileContent, string>, path: SandboxPath, options: WriteOptions = {}): Promise<FileInfo> {
    if (typeof source !== 'string') return this.write(path, source, options);
    return infoOf(entryOf(await uploadFile(this.#target, source, wirePath(path), options)));
  }

  /** One file into a local one, which is replaced when everything is there. */
  async download(path: SandboxPath, localPath: string, options: FileCallOptions = {}): Promise<FileInfo> {
    return downloadFile(await this.stream(path, options), localPath);
  }

  /**
   * A local directory (by its path) or a tar stream into a directory, which is made when it is missing. Stops at the first entry that is not possible or
   * would leave the directory, with an error that names it; what came before it stays.
   */
  async uploadTree(source: string | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>, path: SandboxPath, options: TreeOptions = {}): Promise<TreeReport> {
    const request = { what: 'unpack' as const, path: wirePath(path), ...given({ owners: options.owners }) };
    const leftOut: LocalOmissions = { omitted: [], omittedCount: 0 };
    const archive = typeof source === 'string' ? packLocal(source, leftOut) : source;
    const { end } = await sendStream(this.#target, request, archive, options);
    if (!end) throw DsecError.of('MALFORMED_MESSAGE', 'the node did not say how the tree was unpacked');
    return reportOf(end, leftOut);
  }

  /**
   * A tree into a local directory, which is made when it is missing. Its files are the local user's, modes less the umask, without set-id and
   * sticky bits and with `user.` attributes only, and what that leaves out is told; with `owners` (needs root) all is as it was there, which
   * trusts what ran in the sandbox.
   */
  async downloadTree(path: SandboxPath, localPath: string, { owners = false, ...options }: TreeOptions = {}): Promise<TreeReport> {
    if (owners && !mayKeepOwners()) throw DsecError.of('INVALID_ARGUMENT', 'owners can be kept on this machine by root only; leave `owners` out');
    const archive = await this.tar(path, { ...options, owners });
    const left = await unpackLocal(archive, localPath, { owners });
    return reportOf(endOf(archive), left);
  }

  /** A tree as a tar stream, names relative to `path`. `end` tells afterwards what is not in it. `owners: false`: without set-id bits and foreign attributes. */
  tar(path: SandboxPath, { owners, ...options }: TreeOptions = {}): Promise<StreamOut> {
    return StreamOut.open(this.#target, { what: 'pack', path: wirePath(path), ...given({ owners }) }, options);
  }

  #readOnce(path: string, range: { readonly offset: number; readonly maxBytes?: number; readonly devices?: boolean }, { user, signal }: FileCallOptions) {
    return this.#call('fileRead', { path, ...range, ...given({ user }) }, { signal });
  }

  #call<O extends FileOpName>(op: O, request: Omit<OpRequest<O>, 'v'>, options: OpCallOptions): Promise<OpResult<O>> {
    return this.#target.ops.call(this.#target.sandboxId, op, request, options);
  }
}

const entryOf = <T>({ entry }: { readonly entry: T | null }): T => {
  if (!entry) throw DsecError.of('MALFORMED_MESSAGE', 'the node did not say what was written');
  return entry;
};

const endOf = ({ end }: StreamOut) => {
  if (!end) throw DsecError.of('MALFORMED_MESSAGE', 'the stream has no end');
  return end;
};

const tooLarge = (path: string, limitBytes: number): DsecError =>
  DsecError.of('FILE_TOO_LARGE', `${path} holds more than ${limitBytes} bytes; read a part of it with limit, or as a stream`);

const collect = async (path: string, stream: StreamOut, limitBytes: number): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.byteLength;
    if (length > limitBytes) throw tooLarge(path, limitBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
};
