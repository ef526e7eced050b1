/** What a file is, by its first bytes: names lie. */
import { open } from 'node:fs/promises';
import { DsecError } from '#bus/errors.ts';

export type FileKind = 'erofs' | 'gzip' | 'zstd' | 'xz' | 'bzip2' | 'other';

const EROFS_OFFSET = 1024;
const MAGIC: readonly { readonly kind: FileKind; readonly offset: number; readonly bytes: Buffer }[] = [
  { kind: 'gzip', offset: 0, bytes: Buffer.from('1f8b', 'hex') },
  { kind: 'zstd', offset: 0, bytes: Buffer.from('28b52ffd', 'hex') },
  { kind: 'xz', offset: 0, bytes: Buffer.from('fd377a585a00', 'hex') },
  { kind: 'bzip2', offset: 0, bytes: Buffer.from('BZh') },
  { kind: 'erofs', offset: EROFS_OFFSET, bytes: Buffer.from('e2e1f5e0', 'hex') },
];

/** INVALID_ARGUMENT when the file cannot be read or is not a file. */
export const kindOfFile = async (path: string): Promise<FileKind> => {
  const head = Buffer.alloc(EROFS_OFFSET + 4);
  try {
    const handle = await open(path, 'r');
    try {
      await handle.read(head, 0, head.byteLength, 0);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw DsecError.of('INVALID_ARGUMENT', `file ${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  return MAGIC.find(({ offset, bytes }) => head.subarray(offset, offset + bytes.byteLength).equals(bytes))?.kind ?? 'other';
};
