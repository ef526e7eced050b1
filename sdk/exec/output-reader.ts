/**
 * One output stream of a command as an async iterable of bytes. Every iteration starts at the reader's own offset and
 * gives each byte once, whatever restarts in between: the log is addressed by byte, so a lost answer is asked for again.
 */
import { DsecError } from '#bus/errors.ts';
import type { ExecId, SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { OutputStream } from '#bus/op/schema.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Clock } from '../transport/clock.ts';
import { type OpClient, type OpResult, longPollMs } from '../transport/op-client.ts';
import { ReaderCredit } from './reader-credit.ts';
import { decodeChunks, decodeText } from './text.ts';

export type OutputSource = {
  readonly ops: OpClient;
  readonly clock: Clock;
  readonly sandboxId: SandboxId;
  readonly execId: ExecId;
  readonly stream: OutputStream;
  readonly signal?: AbortSignal | undefined;
};
export type FollowOptions = {
  /** First byte to give. */
  readonly offset?: number;
  /**
   * When to end: with the `command` (default), although a child that it left behind may still hold the pipe; with the
   * `pipe`; or `now`, with what is in the log at this moment.
   */
  readonly until?: 'command' | 'pipe' | 'now';
  /** Whether the program waits for this reader when its log is full (`onFull: block` and `roll`). On for the commands that this client started so. */
  readonly credit?: boolean;
  /** What to do where bytes are no longer kept: `fail` with OUTPUT_EXPIRED (default), or go on at the first one that is. */
  readonly lost?: 'fail' | 'skip';
};

type Read = OpResult<'read'>;

export class OutputReader implements AsyncIterable<Uint8Array> {
  readonly #source: OutputSource;
  readonly #options: Required<FollowOptions>;

  constructor(source: OutputSource, options: FollowOptions = {}) {
    this.#source = source;
    this.#options = { offset: options.offset ?? 0, until: options.until ?? 'command', credit: options.credit ?? false, lost: options.lost ?? 'fail' };
  }

  /** Another reader of the same stream. */
  with(options: FollowOptions): OutputReader {
    return new OutputReader(this.#source, { ...this.#options, ...options });
  }

  /** The stream as text, in pieces that never split a character. */
  text(): AsyncIterable<string> {
    return decodeChunks(this);
  }

  /** Everything from the offset to the end; as much as the command's output limit allows lies in memory then. */
  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  async string(): Promise<string> {
    return decodeText(await this.bytes());
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const credit = this.#options.credit ? this.#newCredit() : undefined;
    let { offset } = this.#options;
    let idlePolls = 0;
    const ahead: Promise<Read>[] = [];
    try {
      await credit?.open();
      for (;;) {
        const { data, body } = await this.#skipLost(ahead.shift() ?? this.#read(offset, this.#options.until === 'now' ? 0 : longPollMs(idlePolls)));
        if (data.offset > offset && this.#options.lost === 'skip') offset = data.offset;
        if (data.offset !== offset) {
          drop(ahead); // asked for ahead on the belief that the chunk before it would be full
          continue;
        }
        offset += body.byteLength;
        idlePolls = body.byteLength === 0 ? idlePolls + 1 : 0;
        this.#readAhead(ahead, offset, data.summary.storedBytes);
        if (body.byteLength > 0) yield body;
        credit?.passed(offset);
        if (this.#isOver(data, offset, body.byteLength)) return;
      }
    } finally {
      drop(ahead);
      credit?.close();
    }
  }

  #newCredit(): ReaderCredit {
    const { ops, clock, sandboxId, execId, stream } = this.#source;
    return new ReaderCredit((request, signal) => ops.call(sandboxId, 'credit', { execId, stream, ...request }, { signal }), clock, this.#options.offset);
  }

  #isOver(data: Read['data'], offset: number, got: number): boolean {
    const { until } = this.#options;
    const drained = offset >= data.summary.storedBytes;
    if (data.eof || (until === 'now' && (drained || got === 0)) || (until === 'command' && data.ended && drained)) return true;
    if (data.ended && !drained && got === 0)
      throw DsecError.of(
        'INTERNAL',
        `the ${this.#source.stream} log of ${this.#source.execId} ends at ${offset}, before its recorded ${data.summary.storedBytes} bytes`,
      );
    return false;
  }

  /** Fills the pipeline with whole chunks that are known to lie in the log. */
  #readAhead(ahead: Promise<Read>[], offset: number, storedBytes: number): void {
    const chunk = WIRE_LIMITS.maxChunkBytes;
    for (let at = offset + ahead.length * chunk; ahead.length < SDK_LIMITS.readAhead && at + chunk <= storedBytes; at += chunk) {
      const asked = this.#read(at, 0);
      asked.catch(() => {}); // reported when its turn comes; dropped when the reader left before
      ahead.push(asked);
    }
  }

  /** Where bytes are gone that this reader may do without, the first read after them. */
  async #skipLost(read: Promise<Read>): Promise<Read> {
    try {
      return await read;
    } catch (thrown) {
      const firstByte = thrown instanceof DsecError && thrown.code === 'OUTPUT_EXPIRED' ? thrown.details['firstByte'] : undefined;
      if (this.#options.lost !== 'skip' || typeof firstByte !== 'number') throw thrown;
      return this.#skipLost(this.#read(firstByte, 0));
    }
  }

  async #read(offset: number, waitMs: number): Promise<Read> {
    const { ops, sandboxId, execId, stream, signal } = this.#source;
    const read = await ops.call(sandboxId, 'read', { execId, stream, offset }, { waitMs, signal });
    if (read.body.byteLength > WIRE_LIMITS.maxChunkBytes)
      throw DsecError.of(
        'MALFORMED_MESSAGE',
        `read of ${execId} answered with ${read.body.byteLength} bytes; at most ${WIRE_LIMITS.maxChunkBytes} were asked for`,
      );
    return read;
  }
}

const drop = (ahead: Promise<Read>[]): void => {
  ahead.length = 0;
};
