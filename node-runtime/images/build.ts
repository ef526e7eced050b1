/**
 * Builds an image and gives it a name: source → tree → checks → EROFS → store → catalogue. The name changes last, so a
 * build that fails, is cancelled or killed leaves the old image in place and no file behind.
 *
 * Does not decide how a source is fetched (`sources/`) nor how the tools run (`tools/`). @paper §5.1 §5.3
 *
 * INV-REPRO: the same input with the same version of mkfs.erofs gives the same digest.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '#adapters/layers/posix/mod.ts';
import type { Clock } from '#actors/ports/clock.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { ImageRecord, LayerInfo, LayerKind, LayerStore } from '#actors/ports/layer-store.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ImageName } from '#bus/ids.ts';
import { isReservedName } from '../snapshots/names.ts';
import { IMAGE_LIMITS } from './limits.ts';
import { type DirectorySource, prepareDirectory } from './sources/directory.ts';
import { type ErofsSource, prepareErofs } from './sources/erofs.ts';
import { type MmdebstrapSource, prepareMmdebstrap } from './sources/mmdebstrap.ts';
import { type NpmSource, prepareNpm } from './sources/npm.ts';
import type { BuildProgress, PreparedTree, SourceContext } from './sources/source.ts';
import { prepareTar, type TarSource } from './sources/tar.ts';
import { type Compression, makeErofs, type Owners } from './tools/mkfs.ts';
import { assertHidesNothing, inspectTree, settleTimes, type TreeFacts } from './tools/tree.ts';
import { createWorkDirectory, sweepWorkDirectories } from './tools/work-directory.ts';

export type ImageSource = DirectorySource | TarSource | MmdebstrapSource | NpmSource | ErofsSource;

export type BuildRequest = {
  readonly name: string;
  readonly kind: LayerKind;
  readonly source: ImageSource;
  /** Default: `keep` for a base, `root` for everything else. */
  readonly owners?: Owners;
  /** Default `none`: fastest to build and to read; layers lie on local disk. */
  readonly compression?: Compression;
};

export type BuildOptions = {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (progress: BuildProgress) => void;
  readonly clock?: Pick<Clock, 'now'>;
};

/** INVALID_ARGUMENT, NO_SPACE, HOST_UNFIT, CANCELLED, OVERLOADED (another build of the name does not end). Repeatable. */
export const buildLayer = (store: LayerStore, request: BuildRequest, options: BuildOptions = {}): Promise<ImageRecord> => build(store, request, options, true);

/** The same without giving the name: for a layer that another one of that name is going to stand on. */
export const buildUnnamed = (store: LayerStore, request: BuildRequest, options: BuildOptions = {}): Promise<ImageRecord> =>
  build(store, request, options, false);

const build = async (store: LayerStore, request: BuildRequest, options: BuildOptions, isNamed: boolean): Promise<ImageRecord> => {
  const name = ImageName.safeParse(request.name);
  if (!name.success) throw invalid('INVALID_ARGUMENT', `image name ${JSON.stringify(request.name.slice(0, 100))}`, name.error);
  if (isReservedName(name.data))
    throw DsecError.of('INVALID_ARGUMENT', `image name ${name.data}: names below snapshots/ are given by the platform; choose another`);
  const onProgress = options.onProgress ?? (() => {});
  try {
    const work = await createWorkDirectory(store.scratchDir);
    try {
      await sweepWorkDirectories(store.scratchDir);
      return await whileOnlyBuilder(store.scratchDir, name.data, { ...options, onProgress, isNamed }, () =>
        buildIn(work.path, store, { ...request, name: name.data }, { ...options, onProgress, isNamed }),
      );
    } finally {
      await work.remove();
    }
  } catch (error) {
    throw buildError(name.data, error);
  }
};

type Running = BuildOptions & { readonly onProgress: (progress: BuildProgress) => void; readonly isNamed: boolean };
type Named = BuildRequest & { readonly name: ImageName };

const buildIn = async (workDir: string, store: LayerStore, request: Named, options: Running): Promise<ImageRecord> => {
  const owners = request.owners ?? (request.kind === 'base' || request.source.type === 'erofs' ? 'keep' : 'root');
  const startedMs = (await stat(workDir)).mtimeMs; // the file system's clock, not the process's
  const tree = await prepare(request.source, { workDir, owners, signal: options.signal, onProgress: options.onProgress });
  options.onProgress({ step: 'checking', detail: tree.description });
  const facts = await check(tree, request, owners, startedMs, options);
  const layer = await packAndStore(workDir, store, request, tree, facts, owners, options);
  const record: ImageRecord = {
    name: request.name,
    digest: layer.digest,
    kind: request.kind,
    sizeBytes: layer.sizeBytes,
    createdAt: (options.clock ?? systemClock).now(),
    source: tree.description.slice(0, 1_000),
  };
  options.signal?.throwIfAborted();
  if (options.isNamed) await store.names.set(record);
  return record;
};

const prepare = (source: ImageSource, context: SourceContext): Promise<PreparedTree> => {
  switch (source.type) {
    case 'directory':
      return prepareDirectory(source, context);
    case 'tar':
      return prepareTar(source, context);
    case 'mmdebstrap':
      return prepareMmdebstrap(source, context);
    case 'npm':
      return prepareNpm(source, context);
    case 'erofs':
      return prepareErofs(source, context);
  }
};

const check = async (tree: PreparedTree, request: Named, owners: Owners, startedMs: number, options: Running): Promise<TreeFacts> => {
  const facts = await inspectTree(
    tree.root,
    {
      what: tree.description,
      ownersKept: owners === 'keep',
      signal: options.signal,
      onProgress: (files) => options.onProgress({ step: 'checking', detail: `${files} files` }),
    },
    tree.generated ? startedMs : null,
  );
  if (request.kind !== 'base') await assertHidesNothing(tree.root, tree.description);
  await settleTimes(facts);
  return facts;
};

const packAndStore = async (
  workDir: string,
  store: LayerStore,
  request: Named,
  tree: PreparedTree,
  facts: TreeFacts,
  owners: Owners,
  options: Running,
): Promise<LayerInfo> => {
  const stored = options.signal ? { signal: options.signal } : {};
  if (request.source.type === 'erofs') {
    options.onProgress({ step: 'storing', detail: request.source.path });
    return store.put(request.source.path, stored);
  }
  const image = join(workDir, 'image.erofs');
  options.onProgress({ step: 'packing', detail: `${facts.files} files, ${Math.ceil(facts.bytes / 1_048_576)} MiB` });
  await makeErofs({
    root: tree.root,
    image,
    owners,
    compression: request.compression ?? 'none',
    latestSeconds: facts.newestSeconds + 1,
    signal: options.signal,
  });
  options.onProgress({ step: 'storing', detail: request.name });
  return store.put(image, { ...stored, consume: true });
};

/** Two builds of one name would only fight over who names the image last; the second waits and then builds what is now there. */
const whileOnlyBuilder = async <T>(scratchDir: string, name: ImageName, options: Running, work: () => Promise<T>): Promise<T> => {
  const file = join(scratchDir, `name-${name.replaceAll('/', '+').replaceAll(':', '@')}.lock`);
  const lock = await lockFile(file, 'exclusive', {
    pollMs: IMAGE_LIMITS.buildLockPollMs,
    maxWaitMs: IMAGE_LIMITS.buildLockWaitMs,
    signal: options.signal,
    onWait: () => options.onProgress({ step: 'waiting', detail: `another process builds ${name}` }),
  });
  if (!lock)
    throw DsecError.of(
      'OVERLOADED',
      `another build of image ${name} has been running for ${IMAGE_LIMITS.buildLockWaitMs / 60_000} minutes; end it, then try again`,
    );
  try {
    return await work();
  } finally {
    await lock.releaseAndRemove();
  }
};

/** Everything that is not typed yet comes from the file system or from an abort. */
const buildError = (name: ImageName, error: unknown): DsecError => {
  if (error instanceof DsecError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (error instanceof Error && (error.name === 'AbortError' || code === 'ABORT_ERR'))
    return DsecError.of('CANCELLED', `build of image ${name} was cancelled; nothing was changed`, { outcome: 'not_applied', cause: error });
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return DsecError.of('NO_SPACE', `build of image ${name}: the disk is full; remove images (dsec image rm, then dsec image gc) or free space`, {
      cause: error,
    });
  return DsecError.of('INTERNAL', `build of image ${name} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
};
