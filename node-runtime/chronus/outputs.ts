/** What of a command's logs goes into an answer: by offset, from the first byte that is kept. */
import { DsecError } from '#bus/errors.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { OpResponse, OutputStream } from '#bus/op/schema.ts';
import type { Command } from './command.ts';
import type { ExecFiles } from './files.ts';
import { summaryOf } from './result.ts';

const NO_BYTES = new Uint8Array(0);

/** The beginning of a stream, for the answers to `exec` and `wait`; nothing when it is no longer kept. */
export const beginningOf = (files: ExecFiles, command: Command, stream: OutputStream): Uint8Array => {
  const { storedBytes, discardedBytes } = command.counts(stream);
  const wanted = Math.min(storedBytes - discardedBytes, EXEC_LIMITS.inlineOutputBytes);
  const bytes = files.read(command.execId, stream, discardedBytes, wanted);
  return bytes && bytes.byteLength === wanted ? bytes : NO_BYTES;
};

export type Slice = { readonly data: OpResponse<'read'>; readonly body: Uint8Array[] };

/** As many bytes from `offset` as are there, up to `maxBytes`. OUTPUT_EXPIRED when they were there once. */
export const sliceOf = (files: ExecFiles, command: Command, stream: OutputStream, offset: number, maxBytes: number): Slice => {
  const counts = command.counts(stream);
  if (offset < counts.discardedBytes) throw expired(command, stream, offset, counts.discardedBytes);
  const wanted = Math.max(0, Math.min(maxBytes, counts.storedBytes - offset));
  const bytes = files.read(command.execId, stream, offset, wanted);
  if (!bytes || bytes.byteLength < wanted) throw expired(command, stream, offset, null);
  const eof = command.complete && offset + bytes.byteLength >= counts.storedBytes;
  return { data: { offset, eof, summary: summaryOf(counts), ended: command.ended }, body: [bytes] };
};

const expired = (command: Command, stream: OutputStream, offset: number, firstByte: number | null): DsecError => {
  const what =
    firstByte === null
      ? `the ${stream} of command ${command.execId} is no longer kept; its result is`
      : `the ${stream} of command ${command.execId} is kept from byte ${firstByte} on, not from ${offset}; read on from there`;
  return DsecError.of('OUTPUT_EXPIRED', what, { details: { firstByte, storedBytes: command.counts(stream).storedBytes } });
};
