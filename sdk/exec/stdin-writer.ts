/**
 * Writes to the stdin of a running command. Bytes are addressed by offset, so a repeated message adds nothing; a pipe
 * that is full answers late or takes less, and the rest is offered again.
 */
import { DsecError } from '#bus/errors.ts';
import type { ExecId, SandboxId } from '#bus/ids.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Clock } from '../transport/clock.ts';
import type { OpClient } from '../transport/op-client.ts';
import { toBytes } from './text.ts';

export type StdinTarget = {
  readonly ops: OpClient;
  readonly clock: Clock;
  readonly sandboxId: SandboxId;
  readonly execId: ExecId;
  readonly signal?: AbortSignal | undefined;
  /** Goes on where another writer has stopped. There is one writer at a time: what two write at once is taken from one of them. */
  readonly resume?: boolean;
  /** Where this writer begins: what lies before is known to be written. Bytes that the sandbox has already taken are not written again. */
  readonly offset?: number;
};

export class StdinWriter {
  readonly #target: StdinTarget;
  /** Writes go out one after another, in the order of the calls. */
  #tail: Promise<void> = Promise.resolve();
  #offset = 0;
  /** Where the other writer has stopped, once it is asked for. */
  #resumed: Promise<void> | undefined;
  #closed = false;

  constructor(target: StdinTarget) {
    this.#target = target;
    this.#offset = target.offset ?? 0;
  }

  /** Resolves when the sandbox has taken the bytes. Nothing to write is not end-of-file. STDIN_CLOSED after `close`, or when the program no longer reads. */
  write(data: string | Uint8Array): Promise<void> {
    if (this.#closed) return Promise.reject(DsecError.of('STDIN_CLOSED', `stdin of ${this.#target.execId} was closed by this client; start another command`));
    const bytes = toBytes(data);
    return this.#enqueue(async () => {
      for (let at = 0; at < bytes.byteLength; at += SDK_LIMITS.stdinChunkBytes) await this.#put(bytes.subarray(at, at + SDK_LIMITS.stdinChunkBytes));
    });
  }

  /** End-of-file after everything written. Closing twice, or after the command ended, is fine. */
  close(): Promise<void> {
    if (this.#closed) return this.#tail;
    this.#closed = true;
    return this.#enqueue(async () => {
      try {
        await this.#call(new Uint8Array(0), true);
      } catch (thrown) {
        if (!(thrown instanceof DsecError) || thrown.code !== 'STDIN_CLOSED') throw thrown;
      }
    });
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#tail.then(() => (this.#target.resume ? this.#resume() : undefined)).then(work);
    this.#tail = done.catch(() => {}); // reported to the caller of this write; later ones meet the same state themselves
    return done;
  }

  #resume(): Promise<void> {
    const { ops, sandboxId, execId, signal } = this.#target;
    this.#resumed ??= ops.call(sandboxId, 'stdin', { execId, offset: 0 }, { signal }).then(
      ({ data }) => {
        this.#offset = data.nextOffset;
      },
      (thrown: unknown) => {
        this.#resumed = undefined; // the next write asks again
        throw thrown;
      },
    );
    return this.#resumed;
  }

  async #put(chunk: Uint8Array): Promise<void> {
    let pauseMs: number = SDK_LIMITS.stdinRetryFirstMs;
    for (let rest = chunk; rest.byteLength > 0; ) {
      const taken = (await this.#call(rest, false)) - this.#offset;
      this.#offset += taken;
      rest = rest.subarray(taken);
      if (taken > 0) {
        pauseMs = SDK_LIMITS.stdinRetryFirstMs;
      } else {
        await this.#target.clock.sleep(pauseMs, this.#target.signal);
        pauseMs = Math.min(pauseMs * 2, SDK_LIMITS.stdinRetryMaxMs);
      }
    }
  }

  /** Where the sandbox stands afterwards: between our offset and the end of `bytes`. */
  async #call(bytes: Uint8Array, close: boolean): Promise<number> {
    const { ops, sandboxId, execId, signal } = this.#target;
    for (;;) {
      try {
        const { data } = await ops.call(sandboxId, 'stdin', { execId, offset: this.#offset, close }, { body: bytes, signal });
        return Math.max(this.#offset, Math.min(data.nextOffset, this.#offset + bytes.byteLength));
      } catch (thrown) {
        if (!(thrown instanceof DsecError) || thrown.code !== 'DEADLINE_EXCEEDED') throw thrown;
        await this.#assertStillRunning(); // a program that does not read holds the answer back for as long as it likes
      }
    }
  }

  async #assertStillRunning(): Promise<void> {
    const { ops, sandboxId, execId, signal } = this.#target;
    const { data } = await ops.call(sandboxId, 'wait', { execId }, { waitMs: 0, signal });
    if (data.exec.state === 'ended') throw DsecError.of('STDIN_CLOSED', `command ${execId} has ended; its stdin is closed`);
  }
}
