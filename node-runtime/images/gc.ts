/**
 * Garbage collection of layers: what no name and no live sandbox refers to, and nobody has put lately, is removed.
 *
 * Does not decide which sandboxes live; the caller says so, and must say all of them. Safe against writers: the store
 * compares the age again under its lock.
 */
import type { ImageRecord, LayerInfo, LayerStore } from '#actors/ports/layer-store.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { GC_LIMITS } from './limits.ts';

export type GcOptions = {
  /** Layers that live sandboxes stand on; asked for after the names were read. */
  readonly liveLayers: () => Promise<ReadonlySet<LayerDigest>>;
  readonly now: TimestampMs;
  readonly graceMs?: number;
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

/** Pure: which layers go. */
export const planGc = (layers: readonly LayerInfo[], names: readonly ImageRecord[], live: ReadonlySet<LayerDigest>, storedBefore: TimestampMs): GcPlan => {
  const named = new Set(names.map((record) => record.digest));
  const unreferenced = layers.filter(({ digest }) => !named.has(digest) && !live.has(digest));
  return {
    remove: unreferenced.filter((layer) => layer.storedAt < storedBefore),
    spare: unreferenced.filter((layer) => layer.storedAt >= storedBefore),
    keptCount: layers.length - unreferenced.length,
  };
};

export const collectGarbage = async (store: LayerStore, options: GcOptions): Promise<GcReport> => {
  const storedBefore = (options.now - (options.graceMs ?? GC_LIMITS.graceMs)) as TimestampMs;
  // Layers before names before live sandboxes: whatever comes to be referenced in between is seen by the later look.
  const layers = await store.list();
  const names = await store.names.list();
  const plan = planGc(layers, names, await options.liveLayers(), storedBefore);
  const removed: LayerInfo[] = [];
  for (const layer of plan.remove) {
    if (options.dryRun || (await store.delete(layer.digest, { storedBefore })) === 'deleted') removed.push(layer);
  }
  return { removed, freedBytes: removed.reduce((sum, layer) => sum + layer.sizeBytes, 0), spared: plan.spare, keptCount: plan.keptCount };
};
