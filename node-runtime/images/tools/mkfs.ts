/**
 * Directory → EROFS image, the same bytes for the same tree: a UUID made of them, files in name order, and a build time that is
 * not the clock's. mkfs.erofs 1.5 (Debian 12) and 1.8 (Debian 13) both take the latter from SOURCE_DATE_EPOCH, which also
 * bounds the files' own times from above. The UUIDs of a stack have to differ: the overlay tells the files of its layers apart by them. Different versions of mkfs.erofs may lay the same tree out differently.
 */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { DsecError } from '#bus/errors.ts';
import { runTool } from './run-tool.ts';

export const COMPRESSIONS = ['none', 'lz4', 'lz4hc', 'zstd'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** `root`: everything belongs to root in the image, whoever owned it outside. */
export type Owners = 'keep' | 'root';

export type MkfsOptions = {
  readonly root: string;
  readonly image: string;
  readonly owners: Owners;
  readonly compression: Compression;
  /** Later times than this become it. */
  readonly latestSeconds: number;
  readonly signal?: AbortSignal | undefined;
};

const NO_UUID = '00000000-0000-0000-0000-000000000000';

export const makeErofs = async (options: MkfsOptions): Promise<void> => {
  if (options.compression === 'zstd') await assertZstd();
  await runTool({
    command: [
      'mkfs.erofs',
      '--quiet',
      '-U',
      NO_UUID,
      '-Enosbcrc', // the digest of the whole covers the superblock too, and the UUID comes into it afterwards
      ...(options.owners === 'root' ? ['--all-root'] : []),
      ...(options.compression === 'none' ? [] : [`-z${options.compression}`]),
      options.image,
      options.root,
    ],
    doing: `make an EROFS image of ${options.root}`,
    env: { SOURCE_DATE_EPOCH: String(options.latestSeconds) },
    signal: options.signal,
  });
  await setUuid(options.image);
};

/** In the superblock: erofs.h of the packer. */
const UUID_OFFSET = 1_024 + 48;
const UUID_BYTES = 16;
const READ_BYTES = 1024 * 1024;

const setUuid = async (image: string): Promise<void> => {
  const file = await open(image, 'r+');
  try {
    const hash = createHash('sha256');
    for await (const part of file.createReadStream({ start: 0, autoClose: false, highWaterMark: READ_BYTES })) hash.update(part as Buffer);
    await file.write(hash.digest().subarray(0, UUID_BYTES), 0, UUID_BYTES, UUID_OFFSET);
  } finally {
    await file.close();
  }
};

/** 1.5 knows lz4 and lz4hc only. Asked before a long build, not after it. */
const assertZstd = async (): Promise<void> => {
  let help = '';
  await runTool({ command: ['mkfs.erofs', '--help'], doing: 'ask mkfs.erofs for its compressors', onLine: (line) => (help += `${line}\n`) });
  if (!/^\s*available compressors are:.*zstd|^\s*zstd/im.test(help))
    throw DsecError.of('NOT_SUPPORTED', 'this mkfs.erofs has no zstd (it needs erofs-utils 1.8); choose lz4 or lz4hc');
};
