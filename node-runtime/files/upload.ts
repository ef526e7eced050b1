/**
 * A stream into a sandbox: chunks by offset, handed to the worker in order and once. A chunk is answered when the worker has
 * taken most of what came before it: that is the sender's back-pressure.
 */
import { DsecError } from '#bus/errors.ts';
import type { EntryRecord } from '#bus/op/file-records.ts';
import type { Omission, StreamEnd } from '#bus/op/files.ts';
import { silent } from './exchange.ts';
import { fileError } from './file-errors.ts';
import { FILES_LIMITS } from './limits.ts';
import { Waiters } from './waiters.ts';
import type { DoneBefore, WorkerFrame } from './wire.ts';
import type { Worker } from './worker.ts';

export type Committed = { readonly entry: EntryRecord | undefined; readonly end: StreamEnd | undefined };

export class Upload {
  readonly #worker: Worker;
  readonly #what: string;
  readonly #waiters = new Waiters();
  readonly #omitted: Omission[] = [];
  /** Of a failure that follows. */
  #done: DoneBefore | undefined;
  #taken = 0;
  #committing = false;
  #result: Committed | undefined;
  #error: DsecError | undefined;

  constructor(worker: Worker, what: string) {
    this.#worker = worker;
    this.#what = what;
    worker.listen({ frame: (frame) => this.#onFrame(frame), close: (error) => this.#fail(error) });
    worker.onDrain(() => this.#waiters.wake());
  }

  /** How far everything has been taken. A chunk beyond that is not taken at all: something before it is missing. */
  async push(offset: number, bytes: Uint8Array): Promise<number> {
    this.#check();
    const fresh = bytes.subarray(Math.min(bytes.byteLength, Math.max(0, this.#taken - offset)));
    if (offset <= this.#taken && fresh.byteLength > 0) {
      if (this.#committing) throw DsecError.of('INVALID_ARGUMENT', `nothing follows the commit at ${this.#taken}`);
      if (this.#worker.unsentBytes <= FILES_LIMITS.windowBytes) {
        this.#worker.chunk(fresh);
        this.#taken += fresh.byteLength;
      }
    }
    const hasRoom = (): boolean => this.#over() || this.#worker.unsentBytes <= FILES_LIMITS.windowBytes / 2;
    if (!(await this.#waiters.until(hasRoom, FILES_LIMITS.silentWorkerMs))) this.#fail(silent(this.#what, FILES_LIMITS.silentWorkerMs));
    this.#check();
    return this.#taken;
  }

  /** Any number of times: the worker is asked once. */
  async commit(totalBytes: number): Promise<Committed> {
    this.#check();
    if (totalBytes !== this.#taken)
      throw DsecError.of('INVALID_ARGUMENT', `the commit names ${totalBytes} bytes, but ${this.#taken} have come; send the others first`);
    if (!this.#committing) this.#worker.commit();
    this.#committing = true;
    if (!(await this.#waiters.until(() => this.#over(), FILES_LIMITS.silentCommitMs))) this.#fail(silent(this.#what, FILES_LIMITS.silentCommitMs));
    this.#check();
    return this.#result as unknown as Committed; // over without an error
  }

  close(error: DsecError): void {
    this.#fail(error);
  }

  #check(): void {
    if (this.#error) throw this.#error;
  }

  #over(): boolean {
    return this.#result !== undefined || this.#error !== undefined;
  }

  #onFrame(frame: WorkerFrame): void {
    if (frame.type === 'omitted') {
      if (this.#omitted.length < FILES_LIMITS.namedOmissions) this.#omitted.push(frame.omission);
    } else if (frame.type === 'entry') this.#succeed({ entry: frame.entry, end: undefined });
    else if (frame.type === 'end')
      this.#succeed({ entry: undefined, end: { bytes: frame.bytes, entries: frame.entries, omittedCount: frame.omitted, omitted: this.#omitted } });
    else if (frame.type === 'partial') this.#done = frame.done;
    else if (frame.type === 'failed') this.#fail(fileError(this.#what, frame.failure, this.#done));
  }

  #succeed(result: Committed): void {
    if (!this.#over()) this.#result = result;
    this.#worker.close();
    this.#waiters.wake();
  }

  #fail(error: DsecError): void {
    if (!this.#over()) this.#error = error;
    this.#worker.close();
    this.#waiters.wake();
  }
}
