/** A stream into the sandbox: chunks in flight, taken in order, each at most once, then one commit. */
import { DsecError } from '#bus/errors.ts';
import type { FileStream } from '#bus/op/files.ts';
import type { z } from 'zod';
import type { OpResponse } from '#bus/op/schema.ts';
import { SDK_FILE_LIMITS } from './limits.ts';
import { chunksOf, type FileContent } from './source.ts';
import { type FileCallOptions, type FileTarget, given, newKey } from './target.ts';

export type StreamRequest = z.input<typeof FileStream>;

type Sent = { readonly offset: number; readonly bytes: Uint8Array; readonly answer: Promise<number> };

/** Sends everything and makes it so. When it fails before the commit, what `write` would have replaced is as it was. */
export const sendStream = async (
  target: FileTarget,
  stream: StreamRequest,
  content: FileContent,
  options: FileCallOptions,
): Promise<OpResponse<'fileCommit'>> => {
  const { ops, sandboxId } = target;
  const session = newKey();
  const { signal } = options;
  await ops.call(sandboxId, 'fileOpen', { session, stream, ...given({ user: options.user }) }, { signal });
  try {
    const totalBytes = await new Sender(target, session, signal).send(content);
    return (await ops.call(sandboxId, 'fileCommit', { session, totalBytes }, { signal, giveUpAfterMs: SDK_FILE_LIMITS.slowCallMs })).data;
  } finally {
    // also after a commit: the node need not keep the answer until it is idle
    ops.call(sandboxId, 'fileClose', { session }).catch(() => undefined);
  }
};

class Sender {
  readonly #target: FileTarget;
  readonly #session: ReturnType<typeof newKey>;
  readonly #signal: AbortSignal | undefined;
  readonly #flying: Sent[] = [];

  constructor(target: FileTarget, session: ReturnType<typeof newKey>, signal: AbortSignal | undefined) {
    this.#target = target;
    this.#session = session;
    this.#signal = signal;
  }

  async send(content: FileContent): Promise<number> {
    let offset = 0;
    for await (const bytes of chunksOf(content, SDK_FILE_LIMITS.chunkBytes)) {
      this.#launch(offset, bytes);
      offset += bytes.byteLength;
      while (this.#flying.length >= SDK_FILE_LIMITS.chunksInFlight) await this.#land();
    }
    while (this.#flying.length > 0) await this.#land();
    return offset;
  }

  #launch(offset: number, bytes: Uint8Array): void {
    const answer = this.#push(offset, bytes);
    answer.catch(() => undefined); // reported when its turn comes
    this.#flying.push({ offset, bytes, answer });
  }

  /** The oldest chunk is taken, or it and all behind it are sent again: one of them overtook it and was not taken either. */
  async #land(): Promise<void> {
    const oldest = this.#flying[0] as Sent;
    const end = oldest.offset + oldest.bytes.byteLength;
    if ((await oldest.answer) >= end) {
      this.#flying.shift();
      return;
    }
    for (const sent of this.#flying.splice(0)) this.#launch(sent.offset, sent.bytes);
  }

  async #push(offset: number, bytes: Uint8Array): Promise<number> {
    const { ops, sandboxId } = this.#target;
    const call = { body: bytes, signal: this.#signal, attemptTimeoutMs: SDK_FILE_LIMITS.pushAttemptMs };
    const { nextOffset } = (await ops.call(sandboxId, 'filePush', { session: this.#session, offset }, call)).data;
    if (nextOffset > offset + bytes.byteLength * SDK_FILE_LIMITS.chunksInFlight + SDK_FILE_LIMITS.chunkBytes * SDK_FILE_LIMITS.chunksInFlight)
      throw DsecError.of('MALFORMED_MESSAGE', `the node says that it took ${nextOffset} bytes, more than were sent`);
    return nextOffset;
  }
}
