/**
 * Bytes that come from a server inside, by offset: held until the client has confirmed them, so that a lost answer can be given
 * again, and no more of them than a window; the server waits then.
 */
import type { Readable } from 'node:stream';
import { DsecError } from '#bus/errors.ts';
import { PORT_LIMITS } from '#bus/limits.ts';

type Waiter = () => void;

export class Inbound {
  #source: Readable | undefined;
  #chunks: Buffer[] = [];
  /** Offset of the first byte held, and behind the last. */
  #begin = 0;
  #end = 0;
  #ended = false;
  #problem: DsecError | undefined;
  readonly #waiters = new Set<Waiter>();

  /** From now on bytes come from there. */
  attach(source: Readable): void {
    this.#source = source;
    source.on('data', (chunk: Buffer) => this.#take(chunk));
    source.on('end', () => this.#finish());
  }

  get ended(): boolean {
    return this.#ended;
  }
  get end(): number {
    return this.#end;
  }

  /** No more bytes come, and why; those that are here are still given. */
  fail(problem: DsecError): void {
    if (this.#ended) return;
    this.#problem ??= problem;
    this.#wake();
  }

  /** Resolves when something is there at `offset`, or nothing will be, or the time is over. */
  async wait(offset: number, ms: number): Promise<void> {
    const isNews = (): boolean => this.#end > offset || this.#ended || this.#problem !== undefined;
    if (isNews() || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(look);
        resolve();
      };
      const look = (): void => {
        if (isNews()) done();
      };
      const timer = setTimeout(done, ms);
      this.#waiters.add(look);
    });
  }

  /** Bytes from `offset` on; what lies before is confirmed by the asking. */
  read(offset: number, maxBytes: number): { readonly bytes: Buffer; readonly eof: boolean } {
    if (offset < this.#begin || offset > this.#end) {
      throw DsecError.of('INVALID_ARGUMENT', `offset ${offset} is not among the bytes from ${this.#begin} to ${this.#end}; go on where the last answer ended`);
    }
    this.#confirm(offset);
    const bytes = this.#first(maxBytes);
    if (bytes.byteLength === 0 && this.#problem && !this.#ended) throw this.#problem;
    return { bytes, eof: this.#ended && offset + bytes.byteLength === this.#end };
  }

  #confirm(offset: number): void {
    for (let first = this.#chunks[0]; first && this.#begin < offset; first = this.#chunks[0]) {
      const gone = Math.min(first.byteLength, offset - this.#begin);
      if (gone === first.byteLength) this.#chunks.shift();
      else this.#chunks[0] = first.subarray(gone);
      this.#begin += gone;
    }
    if (this.#end - this.#begin < PORT_LIMITS.windowBytes) this.#source?.resume();
  }

  #first(maxBytes: number): Buffer {
    const parts: Buffer[] = [];
    let room = maxBytes;
    for (const chunk of this.#chunks) {
      if (room === 0) break;
      const part = chunk.subarray(0, room);
      parts.push(part);
      room -= part.byteLength;
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#end += chunk.byteLength;
    if (this.#end - this.#begin >= PORT_LIMITS.windowBytes) this.#source?.pause();
    this.#wake();
  }

  #finish(): void {
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look();
  }
}
