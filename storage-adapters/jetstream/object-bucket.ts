/**
 * One bucket of JetStream's object store, in the layout of NATS' own clients (`nats object` lists and reads it): an object's bytes are
 * chunks on one subject, its info is one message on another.
 *
 * What those clients do not do and layers need: a chunk whose answer was lost is sent again without being stored twice, a read goes on
 * at the chunk where it broke, an info is replaced only when it is the one that was looked at. Does not retry: callers know how long.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Tail } from '#actors/ports/event-log.ts';
import { DsecError } from '#bus/errors.ts';
import { bucketStream, objectChunkSubject, objectInfoFilter, objectInfoSubject } from '#bus/subjects.ts';
import { HEADER, type Headers, tombstoneHeaders } from '../commit-message.ts';
import type { BusContext } from './context.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import type { Publisher } from './publisher.ts';
import type { Reader } from './reader.ts';
import { bucketConfig, ensureStream } from './streams.ts';
import { StreamTail } from './tail.ts';

/** What an object's info says, as NATS' clients write it. */
const ObjectInfo = z.looseObject({
  name: z.string(),
  nuid: z.string(),
  size: z.number().int().nonnegative(),
  chunks: z.number().int().nonnegative(),
  mtime: z.string(),
  deleted: z.boolean().default(false),
  metadata: z.record(z.string(), z.string()).default({}),
});

export type BucketObject = {
  readonly name: string;
  /** Names the chunks. */
  readonly upload: string;
  readonly sizeBytes: number;
  readonly chunks: number;
  /** When it was written, in milliseconds since 1970, by its writer's clock. */
  readonly writtenAt: number;
  readonly deleted: boolean;
  readonly metadata: Readonly<Record<string, string>>;
};
export type StoredObject = BucketObject & { readonly sequence: number };

/** SHA-256 of the whole object, as 64 hexadecimal digits. */
export type NewObject = Omit<BucketObject, 'deleted'> & { readonly sha256: string };

export class ObjectBucket {
  readonly name: string;
  readonly #stream: string;
  readonly #context: BusContext;
  readonly #publisher: Publisher;
  readonly #reader: Reader;

  constructor(name: string, context: BusContext, publisher: Publisher, reader: Reader) {
    this.name = name;
    this.#stream = bucketStream(name);
    this.#context = context;
    this.#publisher = publisher;
    this.#reader = reader;
  }

  /** Creates or corrects the bucket. BUS_MISCONFIGURED, BUS_UNAVAILABLE. */
  ensure(replicas: number): Promise<void> {
    return ensureStream(this.#context.api, bucketConfig(this.name, replicas));
  }

  /** The newest info of a name, a deleted one too; exact. */
  async last(name: string): Promise<StoredObject | null> {
    const message = await this.#reader.last(this.#stream, objectInfoSubject(this.name, name), 'leader');
    return message && infoOf(message.data, message.sequence);
  }

  /** Sequence of the newest info in the bucket; 0 when there is none. */
  async lastInfoSequence(): Promise<number> {
    return (await this.#reader.last(this.#stream, objectInfoFilter(this.name), 'leader'))?.sequence ?? 0;
  }

  /** Calls `handle` with every info there is and comes, in order; one that cannot be read is reported and passed over. */
  follow(handle: (object: StoredObject | null, sequence: number) => void): Tail {
    return new StreamTail(
      this.#context,
      this.#stream,
      1,
      async ({ data, sequence }) => {
        const object = infoOf(data, sequence);
        if (!object) this.#context.report({ event: 'object_unreadable', stream: this.#stream, sequence });
        handle(object, sequence);
      },
      objectInfoFilter(this.name),
    );
  }

  newUpload(): string {
    return randomBytes(12).toString('hex');
  }

  /** Stores one chunk behind `previous`, the sequence of the chunk before (0: none). Repeatable with the same arguments. */
  async writeChunk(upload: string, index: number, data: Uint8Array, previous: number): Promise<number> {
    const subject = objectChunkSubject(this.name, upload);
    const messageId = `${upload}.${index}`;
    const stored = await this.#publish(subject, data, { [HEADER.messageId]: messageId, [HEADER.expectedSequence]: String(previous) });
    if (stored !== 'conflict') return stored;
    const last = await this.#reader.last(this.#stream, subject, 'leader'); // an earlier try, whose answer was lost
    if (last?.messageId === messageId) return last.sequence;
    throw DsecError.of('INTERNAL', `upload ${upload} of bucket ${this.name}: chunk ${index} has another one before it than was written; upload again`);
  }

  /** Makes an object of what was uploaded, if the name's newest info still is that of `expected` (0: none). */
  write(object: NewObject, expected: number): Promise<number | 'conflict'> {
    const { name, upload, sizeBytes, chunks, writtenAt, metadata, sha256 } = object;
    const info = {
      ...this.#naming(name, upload, writtenAt),
      metadata,
      size: sizeBytes,
      chunks,
      digest: `SHA-256=${Buffer.from(sha256, 'hex').toString('base64url')}=`,
      deleted: false,
    };
    const headers = {
      [HEADER.messageId]: `${upload}.info.${randomBytes(6).toString('hex')}`,
      [HEADER.expectedSequence]: String(expected),
      [HEADER.rollup]: 'sub',
    };
    return this.#publish(objectInfoSubject(this.name, name), Buffer.from(JSON.stringify(info)), headers);
  }

  /** Marks it as deleted; the mark goes by itself, when every follower has seen it. */
  delete({ name, upload, sequence }: StoredObject, at: number): Promise<number | 'conflict'> {
    const info = { ...this.#naming(name, upload, at), size: 0, chunks: 0, digest: '', deleted: true };
    const headers = tombstoneHeaders(`${upload}.deleted.${randomBytes(6).toString('hex')}`, sequence, JETSTREAM_LIMITS.deletedObjectMs);
    return this.#publish(objectInfoSubject(this.name, name), Buffer.from(JSON.stringify(info)), headers);
  }

  /** The first chunk behind `sequence` (0: the first of all); null when there is none, that is after the last, or when they were purged. */
  async chunkAfter(upload: string, sequence: number): Promise<{ readonly data: Uint8Array; readonly sequence: number } | null> {
    const subject = objectChunkSubject(this.name, upload);
    // A replica may lag; what it has is right, and what it lacks the leader knows.
    return (await this.#reader.nextAfterAnywhere(this.#stream, subject, sequence)) ?? this.#reader.nextAfter(this.#stream, subject, sequence);
  }

  /** Removes the chunks of an upload. */
  async purge(upload: string): Promise<void> {
    await this.#context.api.call(`purge of upload ${upload}`, `STREAM.PURGE.${this.#stream}`, { filter: objectChunkSubject(this.name, upload) });
  }

  /** Uploads of which there are chunks. */
  async uploads(): Promise<string[]> {
    const subjects = await this.#context.api.subjectsOf(this.#stream, objectChunkSubject(this.name, '*'));
    return subjects.flatMap((subject) => subject.split('.').at(-1) ?? []);
  }

  /** Sequence of an upload's newest chunk; 0 when there is none. */
  async lastChunkOf(upload: string): Promise<number> {
    return (await this.#reader.last(this.#stream, objectChunkSubject(this.name, upload), 'leader'))?.sequence ?? 0;
  }

  /** Waits until the connection is up, or a moment: between two tries. */
  async settle(signal?: AbortSignal): Promise<void> {
    await delay(JETSTREAM_LIMITS.reopenMinMs, undefined, signal ? { signal } : {});
    await Promise.race([this.#context.watch.settled(), delay(JETSTREAM_LIMITS.reopenMaxMs, undefined, signal ? { signal } : {})]);
  }

  #naming(name: string, upload: string, writtenAt: number) {
    return { name, description: '', bucket: this.name, nuid: upload, options: {}, mtime: new Date(writtenAt).toISOString() };
  }

  async #publish(subject: string, data: Uint8Array, headers: Headers): Promise<number | 'conflict'> {
    const answer = await this.#publisher.publish(subject, data, headers);
    if (answer.outcome === 'stored') return answer.sequence;
    if (answer.outcome === 'conflict') return 'conflict';
    throw new DsecError(answer.error);
  }
}

const infoOf = (data: Uint8Array, sequence: number): StoredObject | null => {
  let raw: unknown;
  try {
    raw = JSON.parse(Buffer.from(data).toString('utf8'));
  } catch {
    return null;
  }
  const parsed = ObjectInfo.safeParse(raw);
  if (!parsed.success) return null;
  const { name, nuid: upload, size: sizeBytes, chunks, mtime, deleted, metadata } = parsed.data;
  return { name, upload, sizeBytes, chunks, writtenAt: Date.parse(mtime) || 0, deleted, metadata, sequence };
};
