/**
 * An image from a tar archive, plain or compressed. Unpacked by GNU tar, which delays links that lead outside, so that no
 * entry is written through one; `tar-listing.ts` has refused bad entries before.
 */
import { statfs } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { accessSync, constants } from 'node:fs';
import { DsecError } from '#bus/errors.ts';
import { IMAGE_LIMITS } from '../limits.ts';
import { missingTool, runTool } from '../tools/run-tool.ts';
import { type FileKind, kindOfFile } from './file-kind.ts';
import { assertPrefix, makeTree } from './prefix.ts';
import type { PreparedTree, SourceContext } from './source.ts';
import { inspectTar, type Whiteouts } from './tar-listing.ts';
import { convertOciWhiteouts } from './whiteouts.ts';

export type TarSource = {
  readonly type: 'tar';
  readonly path: string;
  /** Where the entries go; default the root of the image. */
  readonly prefix?: string;
  /** Leading components of every name to drop; default 0. */
  readonly stripComponents?: number;
  /** Default `refuse`. */
  readonly whiteouts?: Whiteouts;
};

export const prepareTar = async (source: TarSource, context: SourceContext): Promise<PreparedTree> => {
  const file = resolve(source.path);
  const what = `archive ${file}`;
  const stripComponents = source.stripComponents ?? 0;
  if (!Number.isInteger(stripComponents) || stripComponents < 0 || stripComponents > IMAGE_LIMITS.stripComponentsMax)
    throw DsecError.of('INVALID_ARGUMENT', `strip components must be a whole number from 0 to ${IMAGE_LIMITS.stripComponentsMax}`);
  const whiteouts = source.whiteouts ?? 'refuse';
  const prefix = assertPrefix(source.prefix ?? '/');
  assertDecompressor(await kindOfFile(file));

  context.onProgress({ step: 'checking', detail: `reading ${what}` });
  const facts = await inspectTar(what, file, { ownersKept: context.owners === 'keep', stripComponents, whiteouts }, context.signal);
  await assertRoom(what, context.workDir, facts.bytes);

  const { root, inside } = await makeTree(context.workDir, prefix);
  context.onProgress({ step: 'unpacking', detail: `${facts.entries} entries of ${what}` });
  await runTool({
    command: ['tar', ...extraction(context, stripComponents), `--file=${file}`, `--directory=${inside}`],
    doing: `unpack ${what}`,
    signal: context.signal,
  });
  if (whiteouts === 'oci') await convertOciWhiteouts(inside, what);
  return { root, description: prefix === '/' ? what : `${what} at ${prefix}`, generated: true };
};

const extraction = (context: SourceContext, stripComponents: number): string[] => [
  '--extract',
  '--force-local',
  '--numeric-owner',
  context.owners === 'keep' ? '--same-owner' : '--no-same-owner',
  '--same-permissions',
  '--delay-directory-restore',
  '--xattrs',
  '--xattrs-include=user.*',
  '--xattrs-include=security.capability',
  '--warning=no-timestamp',
  `--strip-components=${stripComponents}`,
];

const PROGRAMS: Readonly<Partial<Record<FileKind, string>>> = { gzip: 'gzip', zstd: 'zstd', xz: 'xz', bzip2: 'bzip2' };

const assertDecompressor = (kind: FileKind): void => {
  const program = PROGRAMS[kind];
  if (program !== undefined && !isOnPath(program)) throw missingTool(program);
};

const isOnPath = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

/** The tree and the image made of it lie side by side for a moment. */
const assertRoom = async (what: string, workDir: string, bytes: number): Promise<void> => {
  const { bavail, bsize } = await statfs(workDir);
  const freeBytes = bavail * bsize;
  if (2 * bytes <= freeBytes) return;
  throw DsecError.of(
    'NO_SPACE',
    `${what} unpacks to ${toMiB(bytes)} MiB and needs twice that for a moment; ${toMiB(freeBytes)} MiB are free in ${workDir}. Free space or move the data directory`,
    {
      details: { neededBytes: 2 * bytes, freeBytes },
    },
  );
};
const toMiB = (bytes: number): number => Math.ceil(bytes / 1_048_576);
