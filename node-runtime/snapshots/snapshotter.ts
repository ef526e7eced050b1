/**
 * Takes a snapshot: the sandbox rests while its writable layer is read, goes on, and then image and data are stored and named.
 * @paper §6.1
 *
 * The name comes last, so whatever dies before leaves files that nothing refers to, and the same order takes them again. An order
 * that was carried out is answered from its name. Content that earlier images of the stack or of this sandbox hold is not stored again.
 *
 * A capture for forks has no name and is not waited for: its forks stand on it, and when none does it is collected.
 *
 * INV-REST: a sandbox that was running runs when this returns, however it returns.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { SnapshotFacts } from '#bus/sandbox/snapshot.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { ImageRecord, LayerStore, PutOptions } from '#actors/ports/layer-store.ts';
import type { SnapshotOrder } from '#actors/ports/sandbox-backend.ts';
import { layerStoreError } from '#adapters/layers/posix/mod.ts';
import { dataFilesOf } from '../images/data-files.ts';
import { createWorkDirectory, sweepWorkDirectories } from '../images/tools/work-directory.ts';
import { Semaphore } from '../roles/semaphore.ts';
import { PACKING_LIMITS } from './limits.ts';
import { snapshotName } from './names.ts';
import { Packer, firstIdOf, type PackOrder, type Taken } from './packer.ts';

/** The sandbox's side: where its upper lies, and how it is brought to rest. */
export type SnapshotSource = {
  readonly upper: PackOrder['upper'];
  /** Where its tree can be seen as it sees it. */
  readonly merged: string;
  rest(): Promise<void>;
  goOn(): Promise<void>;
  /** Nobody waits for the snapshot any more: nothing is to come of it. */
  readonly signal: AbortSignal;
};
export type SnapshotResult = { readonly layer: LayerDigest; readonly facts: SnapshotFacts };

type Read = { readonly taken: Taken; readonly frozenMs: number };

export class Snapshotter {
  readonly #store: LayerStore;
  readonly #clock: Clock;
  readonly #turns = new Semaphore(PACKING_LIMITS.atOnce);

  constructor(store: LayerStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** UNPORTABLE_FILE, NO_SPACE, KEY_CONFLICT; the store's errors, LAYER_STORE_UNAVAILABLE among them. */
  take(sandbox: SandboxState, order: SnapshotOrder, source: SnapshotSource): Promise<SnapshotResult> {
    return this.#turns.run(async () => {
      const known = this.#known(sandbox, order);
      if (known) return known;
      const work = await createWorkDirectory(this.#store.scratchDir).catch((thrown: unknown) => {
        throw layerStoreError(`begin snapshot ${order.snapshotId} of ${sandbox.id}`, thrown);
      });
      try {
        await sweepWorkDirectories(this.#store.scratchDir);
        return await this.#takeIn(work.path, sandbox, order, source);
      } finally {
        await work.remove();
      }
    });
  }

  /** What the same order has led to before. KEY_CONFLICT when another sandbox's snapshot has that name. */
  #known({ id, project }: SandboxState, { snapshotId, purpose }: SnapshotOrder): SnapshotResult | null {
    if (purpose === 'fork') return null; // it has no name, and is made anew
    const record = this.#store.names.lookup(snapshotName(project, snapshotId));
    if (!record?.snapshot) return null;
    if (record.snapshot.sandboxId === id) return { layer: record.digest, facts: record.snapshot.facts };
    throw DsecError.of('KEY_CONFLICT', `snapshot ${snapshotId} of project ${project} is one of sandbox ${record.snapshot.sandboxId}; choose another name`, {
      details: { snapshotId, sandboxId: record.snapshot.sandboxId },
    });
  }

  async #takeIn(dir: string, sandbox: SandboxState, order: SnapshotOrder, source: SnapshotSource): Promise<SnapshotResult> {
    const startedMs = this.#clock.monotonicMs();
    const [image, data] = [join(dir, 'image.erofs'), join(dir, 'data')];
    const packer = new Packer({
      what: `sandbox ${sandbox.id}`,
      upper: source.upper,
      merged: source.merged,
      firstId: firstIdOf(sandbox.slot),
      image,
      data,
      uuid: uuidOf(sandbox.spec.layers),
      earlier: this.#earlier(sandbox),
      rules: order.scrub,
      share: order.purpose === 'fork',
    });
    try {
      await packer.prepare();
      const { taken, frozenMs } = await this.#readAtRest(packer, source);
      const how: PutOptions = { consume: true, volatile: order.purpose === 'fork', signal: source.signal };
      const written = await packer.written();
      const stored = written.data && (await this.#store.put(data, { ...how, digest: written.data }));
      const layer = await this.#store.put(image, { ...how, digest: written.image });
      const { clonedBytes, ...counts } = taken;
      const storedBytes = layer.sizeBytes + (stored?.sizeBytes ?? 0) - clonedBytes;
      const facts: SnapshotFacts = { ...counts, removed: [...taken.removed], storedBytes, frozenMs, totalMs: rounded(this.#clock.monotonicMs() - startedMs) };
      if (source.signal.aborted) throw DsecError.of('CANCELLED', `snapshot ${order.snapshotId} of ${sandbox.id} came too late for its deadline`);
      if (order.purpose === 'keep') await this.#name(sandbox, order, layer.digest, facts);
      return { layer: layer.digest, facts };
    } finally {
      await packer.close();
    }
  }

  async #readAtRest(packer: Packer, source: SnapshotSource): Promise<Read> {
    const startedMs = this.#clock.monotonicMs();
    try {
      await source.rest();
      const taken = await packer.take();
      return { taken, frozenMs: rounded(this.#clock.monotonicMs() - startedMs) };
    } finally {
      await source.goOn();
    }
  }

  /** Data files whose content this sandbox may have: of its own snapshots, newest first, and of what it stands on. */
  #earlier({ snapshots, spec }: SandboxState): PackOrder['earlier'] {
    const images = [...snapshots.map(({ layer }) => layer).reverse(), ...[...spec.layers].reverse()];
    const digests = new Set(images.filter((digest) => this.#store.isLocal(digest)).flatMap((digest) => dataFilesOf(this.#store.pathOf(digest))));
    return [...digests].filter((digest) => this.#store.isLocal(digest)).map((digest) => ({ digest, path: this.#store.pathOf(digest) }));
  }

  /** What the name is going to stand for: some of it may have lost its last name meanwhile, or be of a fork and not durable yet. */
  async #renewAll(what: string, stack: readonly LayerDigest[]): Promise<void> {
    const needed = new Set(stack.flatMap((layer) => [layer, ...dataFilesOf(this.#store.pathOf(layer))]));
    for (const digest of needed)
      if (!(await this.#store.renew(digest)))
        throw DsecError.of('LAYER_NOT_FOUND', `snapshot of ${what}: layer ${digest} was collected meanwhile; it is taken again`, { details: { digest } });
  }

  async #name({ id, project, spec }: SandboxState, { snapshotId }: SnapshotOrder, digest: LayerDigest, facts: SnapshotFacts): Promise<void> {
    await this.#renewAll(id, [...spec.layers, digest]);
    const record: ImageRecord = {
      name: snapshotName(project, snapshotId),
      digest,
      kind: 'base',
      sizeBytes: facts.storedBytes,
      createdAt: this.#clock.now(),
      source: `snapshot of ${id}`,
      below: spec.layers,
      snapshot: { sandboxId: id, facts },
    };
    await this.#store.names.set(record);
  }
}

/** A function of what the sandbox stands on: an image never has the digest of one of the layers below it. */
const uuidOf = (layers: readonly LayerDigest[]): string => createHash('sha256').update(layers.join('\n')).digest('hex').slice(0, 32);

const rounded = (ms: number): number => Math.round(ms * 100) / 100;
