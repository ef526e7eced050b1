/**
 * Takes an OCI image layout in: each layer becomes a layer here, deletions as overlay marks, and one name stands for the stack. What
 * does not match its digest is refused.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ImageName, type LayerDigest } from '#bus/ids.ts';
import { SNAPSHOT_LIMITS } from '#bus/limits.ts';
import { type BuildOptions, buildUnnamed } from '../build.ts';
import { runTool } from '../tools/run-tool.ts';
import { type Descriptor, Index, INDEX_MEDIA, LAYER_MEDIA, Manifest, MANIFEST_MEDIA, ociArchitecture } from './layout.ts';

/** INVALID_ARGUMENT, NO_SPACE, CANCELLED. The name changes last. */
export const importOci = async (store: LayerStore, name: string, path: string, options: BuildOptions = {}): Promise<ImageRecord> => {
  const parsed = ImageName.safeParse(name);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', `image name ${JSON.stringify(name.slice(0, 100))}`, parsed.error);
  const source = resolve(path);
  await mkdir(store.scratchDir, { recursive: true, mode: 0o700 });
  const unpacked = await mkdtemp(join(store.scratchDir, 'oci-'));
  try {
    const layout = await openLayout(source, unpacked, options.signal);
    const layers = await layersOf(layout);
    const stack: LayerDigest[] = [];
    let sizeBytes = 0;
    for (const layer of layers) {
      const file = await checkedBlob(layout, layer);
      const made = await buildUnnamed(store, { name: parsed.data, kind: 'base', source: { type: 'tar', path: file, whiteouts: 'oci' } }, options);
      sizeBytes += made.sizeBytes;
      if (!stack.includes(made.digest)) stack.push(made.digest);
    }
    const digest = stack.pop();
    if (!digest || stack.length >= SNAPSHOT_LIMITS.stackLayers)
      throw DsecError.of('INVALID_ARGUMENT', `${source} has ${layers.length} layers; 1 to ${SNAPSHOT_LIMITS.stackLayers} can be taken in`);
    const record: ImageRecord = {
      name: parsed.data,
      digest,
      kind: 'base',
      sizeBytes,
      createdAt: systemClock.now(),
      source: `OCI image ${source}`,
      below: stack,
    };
    for (const below of stack) await store.renew(below);
    await store.names.set(record);
    return record;
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
};

/** A directory is read where it lies; an archive of one is unpacked first. */
const openLayout = async (source: string, unpacked: string, signal: AbortSignal | undefined): Promise<string> => {
  const found = await stat(source).catch((cause: unknown) => {
    throw DsecError.of('INVALID_ARGUMENT', `${source} cannot be read: ${(cause as Error).message}`, { cause });
  });
  if (found.isDirectory()) return source;
  await runTool({
    command: ['tar', '--extract', '--force-local', '--no-same-owner', `--file=${source}`, `--directory=${unpacked}`],
    doing: `unpack ${source}`,
    signal,
  });
  return unpacked;
};

const layersOf = async (layout: string): Promise<readonly Descriptor[]> => {
  const index = parsed(Index, await jsonOf(join(layout, 'index.json')), 'index.json');
  let chosen = choose(index.manifests, 'index.json');
  if (INDEX_MEDIA.has(chosen.mediaType))
    chosen = choose(parsed(Index, await jsonOf(await checkedBlob(layout, chosen)), chosen.digest).manifests, chosen.digest);
  if (!MANIFEST_MEDIA.has(chosen.mediaType)) throw DsecError.of('INVALID_ARGUMENT', `OCI image: ${chosen.mediaType} is no manifest of an image`);
  const { layers } = parsed(Manifest, await jsonOf(await checkedBlob(layout, chosen)), chosen.digest);
  const unknown = layers.find(({ mediaType }) => !LAYER_MEDIA.has(mediaType));
  if (unknown) throw DsecError.of('INVALID_ARGUMENT', `OCI image: layers of type ${unknown.mediaType} are not known; use tar, plain or with gzip or zstd`);
  return layers;
};

/** The one for this machine, or the only one that says nothing about machines. */
const choose = (manifests: readonly Descriptor[], where: string): Descriptor => {
  const architecture = ociArchitecture();
  const found =
    manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === architecture) ?? manifests.find(({ platform }) => !platform);
  if (!found) throw DsecError.of('INVALID_ARGUMENT', `OCI image: ${where} has nothing for linux/${architecture}`);
  return found;
};

const checkedBlob = async (layout: string, { digest, size }: Descriptor): Promise<string> => {
  const path = join(layout, 'blobs/sha256', digest.slice('sha256:'.length));
  const found = await stat(path).catch(() => null);
  if (!found || found.size !== size)
    throw DsecError.of('INVALID_ARGUMENT', `OCI image: blob ${digest} is ${found ? `${found.size} bytes long, not ${size}` : 'not there'}; export it again`);
  const hash = createHash('sha256');
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) hash.update(part);
  if (`sha256:${hash.digest('hex')}` !== digest) throw DsecError.of('INVALID_ARGUMENT', `OCI image: blob ${digest} does not match its digest; export it again`);
  return path;
};

const jsonOf = async (path: string): Promise<unknown> => {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw DsecError.of('INVALID_ARGUMENT', `OCI image: ${path} is not there or is no JSON: ${(cause as Error).message}`, { cause });
  }
};

const parsed = <T>(
  schema: { safeParse(value: unknown): { success: true; data: T } | { success: false; error: Parameters<typeof invalid>[2] } },
  value: unknown,
  what: string,
): T => {
  const result = schema.safeParse(value);
  if (!result.success) throw invalid('INVALID_ARGUMENT', `OCI image: ${what}`, result.error);
  return result.data;
};
