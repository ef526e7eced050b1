/** Single files between this machine and a sandbox, in constant memory; holes stay holes. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { DsecError } from '#bus/errors.ts';
import type { OpResponse } from '#bus/op/schema.ts';
import { randomKey } from '../transport/clock.ts';
import { type FileInfo, infoOf } from './info.ts';
import { SDK_FILE_LIMITS } from './limits.ts';
import type { WriteOptions } from './sandbox-files.ts';
import { sendStream } from './stream-in.ts';
import type { StreamOut } from './stream-out.ts';
import { type FileTarget, given } from './target.ts';

const STAT_BLOCK_BYTES = 512;
const PERMISSIONS = 0o777;

export const uploadFile = async (target: FileTarget, localPath: string, path: string, options: WriteOptions): Promise<OpResponse<'fileCommit'>> => {
  const status = await local(localPath, stat(localPath));
  if (!status.isFile()) throw DsecError.of('INVALID_ARGUMENT', `${localPath} is not a file; a directory goes with uploadTree`);
  const sparse = status.blocks * STAT_BLOCK_BYTES < status.size;
  const mode = options.mode ?? status.mode & PERMISSIONS;
  const request = { what: 'write' as const, path, mode, ...given({ parents: options.parents }), ...(sparse ? { sparse } : {}) };
  return sendStream(target, request, createReadStream(localPath, { highWaterMark: SDK_FILE_LIMITS.chunkBytes }), options);
};

export const downloadFile = async (stream: StreamOut, localPath: string): Promise<FileInfo> => {
  const { entry } = stream;
  if (!entry) throw DsecError.of('MALFORMED_MESSAGE', 'the stream of a file came without its entry');
  const aside = `${localPath}.dsec-${randomKey()}`;
  const file = await local(localPath, open(aside, 'wx', entry.mode & PERMISSIONS));
  try {
    await fill(file, stream, entry.storedBytes < entry.size);
    await file.close();
    await local(localPath, rename(aside, localPath));
  } catch (thrown) {
    stream.close();
    await file.close().catch(() => undefined);
    await rm(aside, { force: true });
    throw thrown;
  }
  return infoOf(entry);
};

const fill = async (file: FileHandle, stream: StreamOut, sparse: boolean): Promise<void> => {
  let at = 0;
  for await (const chunk of stream) {
    for (const [start, end] of sparse ? dataOf(chunk) : [[0, chunk.byteLength] as const])
      for (let done = start; done < end; ) done += (await file.write(chunk, done, end - done, at + done)).bytesWritten;
    at += chunk.byteLength;
  }
  if (sparse) await file.truncate(at);
};

const ZEROS = Buffer.alloc(SDK_FILE_LIMITS.blockBytes);

/** The parts of a chunk that are not whole blocks of zeros. */
function* dataOf(chunk: Uint8Array): Generator<readonly [number, number]> {
  const block = SDK_FILE_LIMITS.blockBytes;
  let start = -1;
  for (let at = 0; at < chunk.byteLength; at += block) {
    const part = chunk.subarray(at, at + block);
    const isHole = ZEROS.compare(part, 0, part.byteLength, 0, part.byteLength) === 0;
    if (isHole && start >= 0) yield [start, at];
    if (isHole) start = -1;
    else if (start < 0) start = at;
  }
  if (start >= 0) yield [start, chunk.byteLength];
}

/** What is wrong with a local file is the caller's to mend. */
export const local = async <T>(path: string, work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unreadable';
    throw DsecError.of(code === 'ENOSPC' ? 'NO_SPACE' : 'INVALID_ARGUMENT', `the local path ${path} cannot be used (${code})`, { cause });
  }
};
