/** One request to a worker that has one answer, and the deadline for a worker that gives none. */
import { DsecError } from '#bus/errors.ts';
import type { EntryRecord } from '#bus/op/file-records.ts';
import type { FileEntry } from '#bus/op/files.ts';
import { fileError, workerGone } from './file-errors.ts';
import type { DoneBefore, FileRequest, Pairs } from './wire.ts';
import type { Worker } from './worker.ts';

export type Answer = { readonly entry: EntryRecord | undefined; readonly bytes: readonly Buffer[]; readonly entries: number };
export type Exchange = {
  readonly request: FileRequest;
  readonly pairs: Pairs;
  /** For messages: "read /etc/passwd". */
  readonly what: string;
  /** Which frame is the last one. */
  readonly ends: 'entry' | 'end';
  /** Content of a write; small enough for one chunk. */
  readonly body?: Uint8Array;
  readonly silentMs: number;
};

/** Rejects with a typed error. The worker may be used again unless it is closed then. */
export const exchange = (worker: Worker, { request, pairs, what, ends, body, silentMs }: Exchange): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const bytes: Buffer[] = [];
    let entry: EntryRecord | undefined;
    let done: DoneBefore | undefined;
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      act();
    };
    const timer = setTimeout(() => {
      worker.close();
      reject(silent(what, silentMs));
    }, silentMs);
    worker.listen({
      frame: (frame) => {
        if (frame.type === 'entry') entry = frame.entry;
        if (frame.type === 'data') bytes.push(frame.bytes);
        if (frame.type === 'partial') done = frame.done;
        if (frame.type === 'failed') settle(() => reject(fileError(what, frame.failure, done)));
        else if (frame.type === ends) settle(() => resolve({ entry, bytes, entries: frame.type === 'end' ? frame.entries : 1 }));
      },
      close: () => settle(() => reject(workerGone(what))),
    });
    worker.request(request, pairs);
    if (body === undefined) return;
    if (body.byteLength > 0) worker.chunk(body);
    worker.commit();
  });

export const silent = (what: string, silentMs: number): DsecError =>
  DsecError.of('DEADLINE_EXCEEDED', `could not ${what}: the sandbox did not answer for ${Math.round(silentMs / 1_000)} s; whether it was done is unknown`);

/** An entry as an answer carries it; the name is the caller's own. */
export const entryOf = ({ name: _, ...entry }: EntryRecord): FileEntry => entry;
