/**
 * The layers that lie on one node: what it lacks it fetches from the store, each layer once for all who wait for it. They outlive the
 * Edge and a power loss; a fetch under way does not outlive the latter. The least used go when there are too many. @paper §5.1
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import type { Random } from '../kernel/random.ts';
import type { VirtualTime } from '../kernel/virtual-time.ts';
import type { Done } from './machine.ts';
import { MACHINE_LIMITS, type MachineQuality } from './machine-quality.ts';

type Waiting = (error: WireError | null) => void;

export class NodeLayers {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #quality: MachineQuality;
  /** Without a store every layer lies on every node. */
  readonly #hasStore: boolean;
  /** Newest use last. */
  readonly #local = new Set<LayerDigest>();
  /** What a beat tells of them, newest use first; another array whenever that changes. */
  #ready: LayerDigest[] = [];
  readonly #fetching = new Map<LayerDigest, Waiting[]>();
  #boot = 0;

  constructor(time: VirtualTime, random: Random, quality: MachineQuality, hasStore: boolean) {
    this.#time = time;
    this.#random = random;
    this.#quality = quality;
    this.#hasStore = hasStore;
  }

  /** Whether all of them lie here; those that do count as used. */
  use(layers: readonly LayerDigest[]): boolean {
    if (!this.#hasStore) return true;
    let lacks = false;
    for (const layer of layers)
      if (this.#local.delete(layer)) this.#used(layer);
      else lacks = true;
    return !lacks;
  }

  /** For beats: used last comes first. */
  ready(): LayerDigest[] {
    return this.#ready;
  }

  /** Brings what is lacking. */
  prepare(layers: readonly LayerDigest[], done: Done<null>): void {
    const lacking = layers.filter((layer) => !this.use([layer]));
    let left = lacking.length;
    let failure: WireError | null = null;
    if (left === 0) return done({ ok: true, value: null });
    for (const layer of lacking)
      this.#fetch(layer, (error) => {
        failure ??= error;
        left -= 1;
        if (left === 0) done(failure ? { ok: false, error: failure } : { ok: true, value: null });
      });
  }

  powerLoss(): void {
    this.#boot += 1;
    this.#fetching.clear();
  }

  #fetch(layer: LayerDigest, heard: Waiting): void {
    const joined = this.#fetching.get(layer);
    if (joined) return void joined.push(heard);
    const waiting = [heard];
    this.#fetching.set(layer, waiting);
    const boot = this.#boot;
    const { fetchMinUs, fetchMaxUs, fetchErrorPerMille } = this.#quality;
    this.#time.after(this.#random.between(fetchMinUs, fetchMaxUs), 'layer fetched', () => {
      if (boot !== this.#boot) return;
      this.#fetching.delete(layer);
      const failed = this.#random.chance(fetchErrorPerMille);
      if (!failed) this.#keep(layer);
      for (const hear of waiting) hear(failed ? this.#failureOf(layer) : null);
    });
  }

  /** One that is tried again here, or one after which another node is tried. */
  #failureOf(layer: LayerDigest): WireError {
    const code = this.#random.chance(500) ? 'LAYER_STORE_UNAVAILABLE' : 'INTERNAL';
    return wireError(code, `layer ${layer}: the store broke off`);
  }

  #used(layer: LayerDigest): void {
    this.#local.add(layer);
    if (this.#ready[0] !== layer) this.#ready = [layer, ...this.#ready.filter((other) => other !== layer)].slice(0, MACHINE_LIMITS.beatLayers);
  }

  #keep(layer: LayerDigest): void {
    this.#used(layer);
    if (this.#local.size <= MACHINE_LIMITS.layers) return;
    for (const oldest of this.#local) {
      this.#local.delete(oldest);
      break;
    }
  }
}
