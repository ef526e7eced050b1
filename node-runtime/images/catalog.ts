/**
 * What an image reference means: a digest stands for itself, a name for the digest that the catalogue holds now.
 * On the create path of every sandbox, so it answers from memory and one or two stat calls (microseconds).
 * @paper §5.1
 */
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ImageName, LayerDigest } from '#bus/ids.ts';
import { isReservedName } from '../snapshots/names.ts';
import { CATALOG_LIMITS } from './limits.ts';
import { nearest } from './near-names.ts';

export class LayerCatalog {
  readonly #store: LayerStore;

  constructor(store: LayerStore) {
    this.#store = store;
  }

  /** IMAGE_NOT_FOUND with similar names; LAYER_NOT_FOUND when the store lacks the layer; INVALID_ARGUMENT for what is neither name nor digest. */
  resolve(reference: string): LayerDigest {
    const digest = LayerDigest.safeParse(reference);
    const resolved = digest.success ? digest.data : this.record(reference).digest;
    if (!this.#store.has(resolved)) throw layerMissing(reference, resolved);
    return resolved;
  }

  /**
   * The layers that any project's reference means, lowest first: more than one for a name that stands for a whole stack. Snapshots are
   * their project's own, and are found through it.
   */
  resolveStack(reference: string): LayerDigest[] {
    if (isReservedName(reference)) throw this.#imageNotFound(reference as ImageName);
    const top = this.resolve(reference);
    const below = LayerDigest.safeParse(reference).success ? [] : (this.record(reference).below ?? []);
    const missing = below.find((digest) => !this.#store.has(digest));
    if (missing) throw layerMissing(reference, missing);
    return [...below, top];
  }

  /** The catalogue's record of a name. IMAGE_NOT_FOUND, INVALID_ARGUMENT. */
  record(reference: string): ImageRecord {
    const name = ImageName.safeParse(reference);
    if (!name.success) throw invalid('INVALID_ARGUMENT', `image reference ${JSON.stringify(reference.slice(0, 100))}`, name.error);
    const record = this.#store.names.lookup(name.data);
    if (!record) throw this.#imageNotFound(name.data);
    return record;
  }

  #imageNotFound(name: ImageName): DsecError {
    const near = nearest(
      name,
      this.#store.names.listNames(CATALOG_LIMITS.scannedNames).filter((known) => !isReservedName(known)),
      CATALOG_LIMITS.suggestions,
    );
    const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : 'see "dsec image ls", or build it with "dsec image build"';
    return DsecError.of('IMAGE_NOT_FOUND', `no image is named ${name}; ${hint}`, { details: { name, near } });
  }
}

/** What is asked for may have been stored a moment ago, by another process: what is not found is looked for once more. */
export const knowing = async <T>(store: Pick<LayerStore, 'catchUp'>, find: () => T): Promise<T> => {
  try {
    return find();
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || !ABSENT.has(thrown.code)) throw thrown;
    await store.catchUp();
    return find();
  }
};

const ABSENT: ReadonlySet<string> = new Set(['IMAGE_NOT_FOUND', 'LAYER_NOT_FOUND', 'SNAPSHOT_NOT_FOUND']);

const layerMissing = (reference: string, digest: LayerDigest): DsecError =>
  DsecError.of(
    'LAYER_NOT_FOUND',
    reference === digest
      ? `layer ${digest} is not in the store; build or import the image again`
      : `image ${reference} names layer ${digest}, which is not in the store; build or import it again`,
    {
      details: { reference, digest },
    },
  );
