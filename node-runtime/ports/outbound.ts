/** Bytes for a server inside, by offset: a repeated message adds nothing, and a server that does not read is not fed. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { DsecError } from '#bus/errors.ts';
import { EXCHANGE_LIMITS } from './limits.ts';

export class Outbound {
  readonly #target: Writable;
  #accepted = 0;
  #closed = false;

  constructor(target: Writable) {
    this.#target = target;
  }

  /** Up to which offset everything is taken: `offset` itself when the server has not read for a while. */
  async put(offset: number, bytes: Uint8Array, close: boolean): Promise<number> {
    if (offset > this.#accepted) throw DsecError.of('INVALID_ARGUMENT', `offset ${offset} leaves a gap; go on at ${this.#accepted}`);
    if (this.#target.writableNeedDrain && !(await this.#drained())) return this.#accepted;
    const fresh = bytes.subarray(Math.min(bytes.byteLength, this.#accepted - offset));
    if (fresh.byteLength > 0) {
      if (this.#closed) throw DsecError.of('INVALID_STATE', 'this direction was closed; nothing can be added to it');
      this.#accepted += fresh.byteLength;
      this.#target.write(fresh);
    }
    if (close && !this.#closed && offset + bytes.byteLength === this.#accepted) {
      this.#closed = true;
      this.#target.end();
    }
    return this.#accepted;
  }

  async #drained(): Promise<boolean> {
    const signal = AbortSignal.timeout(EXCHANGE_LIMITS.sendPatienceMs);
    try {
      await once(this.#target, 'drain', { signal });
      return true;
    } catch {
      return this.#target.destroyed; // then the exchange itself says what is wrong
    }
  }
}
