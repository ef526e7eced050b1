/**
 * Garbage collection of layers: what no name and no live sandbox refers to, and nobody has put lately, is removed.
 *
 * Does not decide which sandboxes live; the caller says so, and must say all of them. Safe against writers: the store
 * compares the age again under its lock.
 */
import type { ImageRecord, LayerInfo, LayerStore } from '#actors/ports/layer-store.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { storedDataFilesOf } from './data-files.ts';
import { GC_LIMITS } from './limits.ts';

export type GcOptions = {
  /** Layers that live sandboxes stand on; asked for after the names were read. */
  readonly liveLayers: () => Promise<ReadonlySet<LayerDigest>>;
  readonly now: TimestampMs;
  readonly graceMs?: number;
  /** Collect these only. */
  readonly only?: (layer: LayerInfo) => boolean;
  /** Report only. */
  readonly dryRun?: boolean;
};

export type GcReport = {
  /** Removed, or with `dryRun` what would be. */
  readonly removed: readonly LayerInfo[];
  readonly freedBytes: number;
  /** Unreferenced, but too young. */
  readonly spared: readonly LayerInfo[];
  readonly keptCount: number;
};

export type GcPlan = { readonly remove: readonly LayerInfo[]; readonly spare: readonly LayerInfo[]; readonly keptCount: number };

export type GcInput = {
  readonly layers: readonly LayerInfo[];
  readonly names: readonly ImageRecord[];
  readonly live: ReadonlySet<LayerDigest>;
  /** Data files that an image stands on. */
  readonly dataFilesOf: (digest: LayerDigest) => readonly LayerDigest[];
  readonly storedBefore: TimestampMs;
};

/** Pure: which layers go. What a layer that stays stands on stays too. */
export const planGc = ({ layers, names, live, dataFilesOf, storedBefore }: GcInput): GcPlan => {
  const referenced = new Set([...live, ...names.flatMap(({ digest, below = [] }) => [digest, ...below])]);
  const isOld = ({ storedAt }: LayerInfo): boolean => storedAt < storedBefore;
  for (const layer of layers) if (referenced.has(layer.digest) || !isOld(layer)) for (const data of dataFilesOf(layer.digest)) referenced.add(data);
  const unreferenced = layers.filter(({ digest }) => !referenced.has(digest));
  return {
    remove: unreferenced.filter(isOld),
    spare: unreferenced.filter((layer) => !isOld(layer)),
    keptCount: layers.length - unreferenced.length,
  };
};

export const collectGarbage = async (store: LayerStore, options: GcOptions): Promise<GcReport> => {
  const storedBefore = (options.now - (options.graceMs ?? GC_LIMITS.graceMs)) as TimestampMs;
  // Layers before names before live sandboxes: whatever comes to be referenced in between is seen by the later look.
  const layers = await store.list();
  const names = await store.names.list();
  const dataFiles = new Map(await Promise.all(layers.map(async ({ digest }) => [digest, await storedDataFilesOf(store, digest)] as const)));
  const plan = planGc({ layers, names, live: await options.liveLayers(), dataFilesOf: (digest) => dataFiles.get(digest) ?? [], storedBefore });
  const removed: LayerInfo[] = [];
  for (const layer of plan.remove) {
    if (options.only && !options.only(layer)) continue;
    if (options.dryRun || (await store.delete(layer.digest, { storedBefore })) === 'deleted') removed.push(layer);
  }
  return { removed, freedBytes: removed.reduce((sum, layer) => sum + layer.sizeBytes, 0), spared: plan.spare, keptCount: plan.keptCount };
};
