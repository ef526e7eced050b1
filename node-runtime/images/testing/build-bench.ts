/** A store of its own for one spec file, and short ways to build into it. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { ImageRecord } from '#actors/ports/layer-store.ts';
import { type BuildOptions, type BuildRequest, buildLayer, type ImageSource } from '../build.ts';

export type BuildBench = {
  readonly scratch: string;
  readonly store: PosixLayerStore;
  build(source: ImageSource, extra?: Partial<BuildRequest>, options?: BuildOptions): Promise<ImageRecord>;
  /** Image file of a record. */
  pathOf(record: ImageRecord): string;
  /** What builds have left beside the store; nothing, after each. */
  leftovers(): Promise<string[]>;
  remove(): Promise<void>;
};

export const createBuildBench = async (): Promise<BuildBench> => {
  const scratch = await mkdtemp(join(tmpdir(), 'dsec-images-'));
  const store = new PosixLayerStore({ dir: join(scratch, 'layers') });
  return {
    scratch,
    store,
    build: (source, extra = {}, options = {}) => buildLayer(store, { name: 'image', kind: 'base', source, ...extra }, options),
    pathOf: (record) => store.pathOf(record.digest),
    leftovers: () => readdir(store.scratchDir),
    remove: () => rm(scratch, { recursive: true }),
  };
};
