/** What happens to files, as it happens. */
import { DsecError } from '#bus/errors.ts';
import { type EventKind, eventReader, type RecordReader, type EventRecord } from '#bus/op/file-records.ts';
import type { StreamRequest } from './stream-in.ts';
import { StreamOut } from './stream-out.ts';
import type { FileCallOptions, FileTarget } from './target.ts';

/**
 * `overflow`: more happened than was kept, so look again. `unwatched`: what happens in this directory is not told, because there are too many.
 * The two halves of a rename have the same `cookie`.
 */
export type FileEvent = { readonly kind: Exclude<EventKind, 'watching'>; readonly name: string; readonly isDirectory: boolean; readonly cookie: number };

export class FileWatch implements AsyncIterable<FileEvent> {
  readonly #stream: StreamOut;
  readonly #chunks: AsyncGenerator<Uint8Array>;
  readonly #reader: RecordReader<EventRecord>;
  readonly #first: readonly EventRecord[];

  private constructor(stream: StreamOut, chunks: AsyncGenerator<Uint8Array>, reader: RecordReader<EventRecord>, first: readonly EventRecord[]) {
    this.#stream = stream;
    this.#chunks = chunks;
    this.#reader = reader;
    this.#first = first;
  }

  static async open(target: FileTarget, request: StreamRequest, options: FileCallOptions): Promise<FileWatch> {
    const stream = await StreamOut.open(target, request, options, true);
    const chunks = stream[Symbol.asyncIterator]();
    const reader = eventReader();
    const first: EventRecord[] = []; // directories that are too many are told before it begins
    while (!first.some(({ kind }) => kind === 'watching')) {
      const { value, done } = await chunks.next();
      if (done) throw DsecError.of('MALFORMED_MESSAGE', 'the watch ended before it began');
      first.push(...reader.take(value));
    }
    return new FileWatch(stream, chunks, reader, first);
  }

  /** Ends when the watched thing is gone, or by `close`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<FileEvent> {
    try {
      yield* eventsOf(this.#first);
      for await (const chunk of this.#chunks) yield* eventsOf(this.#reader.take(chunk));
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#stream.close();
  }
}

function* eventsOf(records: readonly EventRecord[]): Generator<FileEvent> {
  for (const { kind, name, isDirectory, cookie } of records) if (kind !== 'watching') yield { kind, name, isDirectory, cookie };
}
