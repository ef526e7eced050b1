/**
 * Where layers are kept: immutable EROFS images by content address, and the catalogue of names that point at them.
 *
 * Does not decide which images a sandbox gets, how they are built, or where they are mounted (node-runtime/images).
 * Adapters: posix, object. One contract suite, `test/contract/layer-store.contract.ts`, runs against all of them.
 * @paper §5.1 §5.3
 *
 * INV-LAYER: whatever a digest names is whole and unchanging; a killed writer leaves nothing that a digest or a name reaches.
 */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { ImageName, LayerDigest, SandboxId } from '#bus/ids.ts';
import { SnapshotFacts } from '#bus/sandbox/snapshot.ts';
import { TimestampMs } from '#bus/units.ts';

/** Place in a sandbox's stack: base lowest, then workspaces, then toolkits. */
export const LayerKind = z.enum(['base', 'workspace', 'toolkit']);
export type LayerKind = z.infer<typeof LayerKind>;

/** `storedAt` is when the layer was last put: a repeated put renews it, and with it the grace period of garbage collection. */
export type LayerInfo = { readonly digest: LayerDigest; readonly sizeBytes: number; readonly storedAt: TimestampMs; readonly volatile?: true };

/** One name of the catalogue. `source` tells people what the image was made from; no program reads it. */
export const ImageRecord = z.object({
  name: ImageName,
  digest: LayerDigest,
  kind: LayerKind,
  sizeBytes: z.number().int().nonnegative(),
  createdAt: TimestampMs,
  source: z.string().max(1_000),
  /** Layers that this one was made on, lowest first: the name stands for the whole stack. */
  below: z.array(LayerDigest).optional(),
  /** Where it comes from, when it is a snapshot. */
  snapshot: z.object({ sandboxId: SandboxId, facts: SnapshotFacts }).optional(),
});
export type ImageRecord = z.infer<typeof ImageRecord>;

export type PutOptions = {
  /** The store may move the file instead of copying it; afterwards the path is gone. */
  readonly consume?: boolean;
  /**
   * Usable at once and not yet durable: a power cut may take it. What is only there for sandboxes that a power cut takes too need
   * not wait for a disk. Until somebody renews or names it, `list` says `volatile`.
   */
  readonly volatile?: boolean;
  /** Of the file, from whoever has just written and hashed it: it need not be read for that again. */
  readonly digest?: LayerDigest;
  readonly signal?: AbortSignal;
};

/** `kept`: it was put again at or after `storedBefore`, so somebody is about to use it. */
export type DeleteOutcome = 'deleted' | 'absent' | 'kept';

/** `corrupt`: the bytes no longer match the digest; delete the layer and build or fetch it again. */
export type VerifyOutcome = 'intact' | 'corrupt' | 'absent';

export interface LayerStore {
  readonly names: ImageNames;
  /** Directory where images may be put together, so placed that `put` with `consume` need not copy. May not exist yet. */
  readonly scratchDir: string;
  /** Stores an image file; idempotent. Durable when it resolves. NO_SPACE, INVALID_ARGUMENT, CANCELLED, BUS_UNAVAILABLE. */
  put(file: string, options?: PutOptions): Promise<LayerInfo>;
  /** Cheap and synchronous: callers ask on the create path. */
  has(digest: LayerDigest): boolean;
  /** Whether `pathOf` answers. Where the store lies off the node a layer may be in it and not here. Synchronous like `has`. */
  isLocal(digest: LayerDigest): boolean;
  /** Path for mount(2) on this machine. LAYER_NOT_FOUND when the layer does not lie here. */
  pathOf(digest: LayerDigest): string;
  /** Brings the layer here; several calls at once are one. LAYER_NOT_FOUND, NO_SPACE, BUS_UNAVAILABLE, CANCELLED. */
  ensureLocal(digest: LayerDigest, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Afterwards `has` and `lookup` know all that anybody had stored before the call. BUS_UNAVAILABLE. */
  catchUp(): Promise<void>;
  /** The image's bytes. LAYER_NOT_FOUND. */
  read(digest: LayerDigest): Promise<Readable>;
  list(): Promise<LayerInfo[]>;
  /** As if it were put again, durably: for whoever is about to refer to it. False when the store does not hold it. */
  renew(digest: LayerDigest): Promise<boolean>;
  /** Removes one layer, unless it was put at or after `storedBefore`. Names that point at it are the caller's concern. */
  delete(digest: LayerDigest, options?: { readonly storedBefore?: TimestampMs }): Promise<DeleteOutcome>;
  /** Reads the whole layer and compares. */
  verify(digest: LayerDigest): Promise<VerifyOutcome>;
}

export interface ImageNames {
  /** Cheap and synchronous (microseconds): on the create path. Sees this process's changes at once, others' at the latest after `catchUp`. */
  lookup(name: ImageName): ImageRecord | null;
  /** Creates or replaces. Atomic among processes. LAYER_NOT_FOUND when the store does not hold the digest. */
  set(record: ImageRecord): Promise<void>;
  /** False when there was no such name. The layer stays until garbage collection. */
  delete(name: ImageName): Promise<boolean>;
  /** Every record, by name. */
  list(): Promise<ImageRecord[]>;
  /** Names alone, unordered, at most `limit`: for suggestions. */
  listNames(limit: number): ImageName[];
}
