/** Reads the flags of `dsec image build` and `dsec image import` into a build request. Pure but for one look at the file's kind. */
import { stat } from 'node:fs/promises';
import { LayerKind } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import type { BuildRequest, ImageSource } from '../build.ts';
import { kindOfFile } from '../sources/file-kind.ts';
import { VARIANTS } from '../sources/mmdebstrap.ts';
import { WHITEOUTS } from '../sources/tar-listing.ts';
import { COMPRESSIONS } from '../tools/mkfs.ts';

export type BuildFlags = {
  readonly fromDir?: string;
  readonly fromTar?: string;
  readonly fromNpm?: string;
  readonly mmdebstrap?: true;
  readonly kind?: string;
  readonly owner?: string;
  readonly compress?: string;
  readonly prefix?: string;
  readonly stripComponents?: string;
  readonly whiteouts?: string;
  readonly suite?: string;
  readonly variant?: string;
  readonly include?: readonly string[];
  readonly slim?: true;
  readonly dependencies?: string;
};

export const OWNERS = ['keep', 'root'] as const;
export const DEPENDENCIES = ['none', 'production', 'all'] as const;

export const buildRequestOf = (name: string, flags: BuildFlags): BuildRequest => {
  const source = sourceOf(flags);
  return { name, source, ...commonOf(flags, source.type === 'mmdebstrap' ? 'base' : 'workspace') };
};

/** A path decides by itself what it is: a directory, an EROFS image, or an archive. */
export const importRequestOf = async (path: string, name: string, flags: BuildFlags): Promise<BuildRequest> => {
  const found = await stat(path).catch((cause: unknown) => {
    throw DsecError.of('INVALID_ARGUMENT', `${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  });
  const source = found.isDirectory()
    ? directoryOf(path, flags)
    : (await kindOfFile(path)) === 'erofs'
      ? ({ type: 'erofs', path } as const)
      : tarOf(path, flags);
  return { name, source, ...commonOf(flags, 'base') };
};

const sourceOf = (flags: BuildFlags): ImageSource => {
  const given = [flags.fromDir, flags.fromTar, flags.fromNpm, flags.mmdebstrap].filter((flag) => flag !== undefined);
  if (given.length !== 1) throw DsecError.of('INVALID_ARGUMENT', 'give exactly one of --from-dir, --from-tar, --from-npm and --mmdebstrap');
  if (flags.fromDir !== undefined) return directoryOf(flags.fromDir, flags);
  if (flags.fromTar !== undefined) return tarOf(flags.fromTar, flags);
  if (flags.fromNpm !== undefined) return npmOf(flags.fromNpm, flags);
  return {
    type: 'mmdebstrap',
    ...present('suite', flags.suite),
    ...present('variant', oneOf('--variant', VARIANTS, flags.variant)),
    ...present('include', flags.include),
    ...present('slim', flags.slim),
  };
};

const directoryOf = (path: string, flags: BuildFlags): ImageSource => ({ type: 'directory', path, ...present('prefix', flags.prefix) });

const tarOf = (path: string, flags: BuildFlags): ImageSource => ({
  type: 'tar',
  path,
  ...present('prefix', flags.prefix),
  ...present('whiteouts', oneOf('--whiteouts', WHITEOUTS, flags.whiteouts)),
  ...present('stripComponents', flags.stripComponents === undefined ? undefined : Number(flags.stripComponents)),
});

const npmOf = (specifier: string, flags: BuildFlags): ImageSource => {
  const at = specifier.lastIndexOf('@');
  if (at <= 0) throw DsecError.of('INVALID_ARGUMENT', `--from-npm ${specifier} names no version; write package@1.2.3`);
  return {
    type: 'npm',
    name: specifier.slice(0, at),
    version: specifier.slice(at + 1),
    ...present('prefix', flags.prefix),
    ...present('dependencies', oneOf('--dependencies', DEPENDENCIES, flags.dependencies)),
  };
};

const commonOf = (flags: BuildFlags, defaultKind: LayerKind): Pick<BuildRequest, 'kind' | 'owners' | 'compression'> => ({
  kind: oneOf('--kind', LayerKind.options, flags.kind) ?? defaultKind,
  ...present('owners', oneOf('--owner', OWNERS, flags.owner)),
  ...present('compression', oneOf('--compress', COMPRESSIONS, flags.compress)),
});

const oneOf = <T extends string>(flag: string, allowed: readonly T[], value: string | undefined): T | undefined => {
  if (value === undefined) return undefined;
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw DsecError.of('INVALID_ARGUMENT', `${flag} ${value} is none of ${allowed.join(', ')}`);
  return found;
};

const present = <K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } => (value === undefined ? {} : ({ [key]: value } as { [P in K]: V }));
