/**
 * A stream out of the sandbox as an async iterable. Chunks are asked for ahead once the stream proves long; each is given once and
 * in order, and the node forgets a chunk only when it is said to be here.
 */
import { DsecError } from '#bus/errors.ts';
import type { FileEntry, StreamEnd } from '#bus/op/files.ts';
import type { OpResult } from '../transport/op-client.ts';
import { SDK_FILE_LIMITS } from './limits.ts';
import type { StreamRequest } from './stream-in.ts';
import { type FileCallOptions, type FileTarget, given, newKey } from './target.ts';

type Pull = OpResult<'filePull'>;

export class StreamOut implements AsyncIterable<Uint8Array> {
  readonly #target: FileTarget;
  readonly #session: ReturnType<typeof newKey>;
  readonly #signal: AbortSignal | undefined;
  readonly #live: boolean;
  #begun = false;
  /** The file, as it was when the stream was opened; null for streams that are not of one file. */
  readonly entry: FileEntry | null;
  /** Set when the last byte was given. */
  end: StreamEnd | undefined;

  private constructor(target: FileTarget, session: ReturnType<typeof newKey>, signal: AbortSignal | undefined, live: boolean, entry: FileEntry | null) {
    this.#target = target;
    this.#session = session;
    this.#signal = signal;
    this.#live = live;
    this.entry = entry;
  }

  /** `live`: what comes is given at once, however little it is. */
  static async open(target: FileTarget, stream: StreamRequest, options: FileCallOptions, live = false): Promise<StreamOut> {
    const session = newKey();
    const { data } = await target.ops.call(target.sandboxId, 'fileOpen', { session, stream, ...given({ user: options.user }) }, { signal: options.signal });
    return new StreamOut(target, session, options.signal, live, data.entry);
  }

  /** Once: bytes that were given are not kept. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    if (this.#begun) throw DsecError.of('INVALID_STATE', 'this stream is being read already; open another');
    this.#begun = true;
    const ahead: { readonly offset: number; readonly pull: Promise<Pull> }[] = [];
    const chunk = SDK_FILE_LIMITS.chunkBytes;
    let offset = 0;
    let width = 1;
    try {
      while (!this.end) {
        while (ahead.length < width) {
          const at = offset + ahead.length * chunk;
          const pull = this.#pull(at, offset);
          pull.catch(() => undefined); // reported when its turn comes; dropped when the reader left before
          ahead.push({ offset: at, pull });
        }
        const { data, body } = await (ahead.shift() as (typeof ahead)[number]).pull;
        offset += body.byteLength;
        if (data.end) this.end = data.end;
        if (body.byteLength === chunk && !this.#live) width = SDK_FILE_LIMITS.chunksInFlight;
        else ahead.length = 0; // asked for on the belief that this one would be full
        if (body.byteLength > 0) yield body;
      }
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#target.ops.call(this.#target.sandboxId, 'fileClose', { session: this.#session }).catch(() => undefined); // it is closed when it is idle, too
  }

  async #pull(offset: number, ack: number): Promise<Pull> {
    const { ops, sandboxId } = this.#target;
    const request = { session: this.#session, offset, ack, ...(this.#live ? { minBytes: 1 } : {}) };
    const pull = await ops.call(sandboxId, 'filePull', request, { waitMs: SDK_FILE_LIMITS.pullWaitMs, signal: this.#signal });
    if (pull.body.byteLength > SDK_FILE_LIMITS.chunkBytes) throw DsecError.of('MALFORMED_MESSAGE', 'the node sent more than was asked for');
    return pull;
  }
}
