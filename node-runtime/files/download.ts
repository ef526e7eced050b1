/**
 * A stream out of a sandbox: what the worker sends, kept until the reader says that it has it. The worker is read only as far as
 * somebody asks, so a reader's pace is the sender's, and at most a window lies in memory.
 */
import type { Clock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import type { EntryRecord } from '#bus/op/file-records.ts';
import type { Omission, StreamEnd } from '#bus/op/files.ts';
import type { OpParsed } from '#bus/op/schema.ts';
import { silent } from './exchange.ts';
import { fileError } from './file-errors.ts';
import { FILES_LIMITS } from './limits.ts';
import { Waiters } from './waiters.ts';
import type { WorkerFrame } from './wire.ts';
import type { Worker } from './worker.ts';

export type Pull = Pick<OpParsed<'filePull'>, 'offset' | 'ack' | 'minBytes' | 'maxBytes' | 'waitMs'>;
export type Pulled = { readonly end: StreamEnd | null; readonly body: Buffer[] };

export class Download {
  readonly #worker: Worker;
  readonly #what: string;
  readonly #clock: Clock;
  readonly #live: boolean;
  readonly #waiters = new Waiters();
  readonly #chunks: Buffer[] = [];
  readonly #omitted: Omission[] = [];
  /** Offsets of the first byte kept, of the end of what came, and of the end of what is asked for. */
  #base = 0;
  #received = 0;
  #wanted = 0;
  /** When the worker was last heard, or last asked to go on. */
  #heardAtMs: number;
  #paused = false;
  #entry: EntryRecord | undefined;
  #end: StreamEnd | undefined;
  #error: DsecError | undefined;

  /** `live`: nothing may happen for as long as it likes. */
  constructor(worker: Worker, what: string, clock: Clock, live: boolean) {
    this.#worker = worker;
    this.#what = what;
    this.#clock = clock;
    this.#live = live;
    this.#heardAtMs = clock.monotonicMs();
    worker.listen({ frame: (frame) => this.#onFrame(frame), close: (error) => this.#fail(error) });
  }

  /** Resolves with the first frame: the file's entry when the stream has one; rejects when it cannot be had. */
  async started(): Promise<EntryRecord | undefined> {
    if (!(await this.#waiters.until(() => this.#begun(), FILES_LIMITS.silentWorkerMs))) this.#giveUpWhenSilent();
    if (this.#error) throw this.#error;
    return this.#entry;
  }

  async pull({ offset, ack, minBytes, maxBytes, waitMs }: Pull): Promise<Pulled> {
    if (offset < this.#base)
      throw DsecError.of('INVALID_ARGUMENT', `bytes from ${offset} on were acknowledged and are no longer kept; the first one is ${this.#base}`);
    this.#forgetBelow(Math.min(ack, offset, this.#received));
    if (offset + maxBytes > this.#base + FILES_LIMITS.windowBytes)
      throw DsecError.of('LIMIT_OUT_OF_RANGE', `bytes up to ${offset + maxBytes} are more than ${FILES_LIMITS.windowBytes} ahead of what is acknowledged`);
    this.#wanted = Math.max(this.#wanted, offset + maxBytes);
    this.#breathe();
    const came = await this.#waiters.until(() => this.#over() || this.#received >= offset + minBytes, waitMs);
    if (!came) this.#giveUpWhenSilent();
    if (this.#error) throw this.#error;
    const body = this.#slice(offset, maxBytes);
    const reached = offset + body.reduce((n, part) => n + part.byteLength, 0);
    return { body, end: this.#end && reached >= this.#received ? this.#end : null };
  }

  close(error: DsecError): void {
    this.#fail(error);
  }

  #begun(): boolean {
    return this.#over() || this.#entry !== undefined || this.#received > 0;
  }

  #over(): boolean {
    return this.#end !== undefined || this.#error !== undefined;
  }

  #giveUpWhenSilent(): void {
    if (!this.#live && this.#clock.monotonicMs() - this.#heardAtMs >= FILES_LIMITS.silentWorkerMs) this.#fail(silent(this.#what, FILES_LIMITS.silentWorkerMs));
  }

  #onFrame(frame: WorkerFrame): void {
    this.#heardAtMs = this.#clock.monotonicMs();
    if (frame.type === 'entry') this.#entry = frame.entry;
    else if (frame.type === 'omitted') {
      if (this.#omitted.length < FILES_LIMITS.namedOmissions) this.#omitted.push(frame.omission);
    } else if (frame.type === 'data') {
      this.#chunks.push(frame.bytes);
      this.#received += frame.bytes.byteLength;
      this.#breathe();
    } else if (frame.type === 'end') {
      this.#end = { bytes: frame.bytes, entries: frame.entries, omittedCount: frame.omitted, omitted: this.#omitted };
      this.#worker.close();
    } else if (frame.type === 'failed') this.#fail(fileError(this.#what, frame.failure));
    this.#waiters.wake();
  }

  #fail(error: DsecError): void {
    if (!this.#over()) this.#error = error;
    this.#worker.close();
    this.#waiters.wake();
  }

  /** Reads on while somebody wants more than there is. */
  #breathe(): void {
    const pause = this.#received > 0 && this.#received >= this.#wanted;
    if (pause === this.#paused) return;
    this.#paused = pause;
    if (pause) return this.#worker.pause();
    this.#heardAtMs = this.#clock.monotonicMs();
    this.#worker.resume();
  }

  #forgetBelow(offset: number): void {
    for (let first = this.#chunks[0]; first && this.#base + first.byteLength <= offset; first = this.#chunks[0]) {
      this.#base += first.byteLength;
      this.#chunks.shift();
    }
  }

  #slice(offset: number, maxBytes: number): Buffer[] {
    const parts: Buffer[] = [];
    let at = this.#base;
    for (const chunk of this.#chunks) {
      const part = chunk.subarray(Math.max(0, offset - at), Math.max(0, offset + maxBytes - at));
      if (part.byteLength > 0) parts.push(part);
      at += chunk.byteLength;
      if (at >= offset + maxBytes) break;
    }
    return parts;
  }
}
