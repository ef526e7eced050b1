/** Turns a client's request for a sandbox into the resolved spec: names to digests, defaults written out, limits checked. */
import { DsecError } from '#bus/errors.ts';
import type { JobId, LayerDigest, SandboxId } from '#bus/ids.ts';
import { SNAPSHOT_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import { DEFAULT_LIVES, type Limits, type Lives, type SandboxRequest, type SandboxSpec } from '#bus/sandbox/spec.ts';

/** A whole stack of layers, and what it was taken from. */
export type Stack = { readonly layers: readonly LayerDigest[]; readonly image: string } & (
  | { readonly forkedFrom: SandboxId }
  | { readonly recoveredFrom: NonNullable<SandboxSpec['recoveredFrom']> }
);
export type StackReference = Extract<SandboxRequest['image'], object>;

export type Resolve = {
  /** What a name or digest means in the layer catalogue, lowest first; IMAGE_NOT_FOUND names near matches. */
  stack(reference: string): readonly LayerDigest[] | Promise<readonly LayerDigest[]>;
  /** A snapshot, capture, or what is left of a sandbox, of the caller's project; SNAPSHOT_NOT_FOUND. */
  taken(reference: StackReference): Stack | Promise<Stack>;
};
export type ResolvedSpec = { readonly spec: SandboxSpec; readonly forkedFrom: SandboxId | null };

/** `share`: the job in whose share of the quota it counts. */
export const resolveSpec = async (request: SandboxRequest, resolve: Resolve, defaults: Limits, share?: JobId): Promise<ResolvedSpec> => {
  if (request.backend !== 'container') throw DsecError.of('NOT_SUPPORTED', `backend ${request.backend} is not available in this version; use container`);
  const { image } = request;
  const taken = typeof image === 'object' ? await resolve.taken(image) : null;
  const layers: LayerDigest[] = typeof image === 'object' ? [...(taken?.layers ?? [])] : [...(await resolve.stack(image))];
  for (const reference of [...request.workspaces, ...request.toolkits]) layers.push(await oneLayer(resolve, reference));
  if (layers.length > SNAPSHOT_LIMITS.stackLayers)
    throw DsecError.of(
      'LIMIT_OUT_OF_RANGE',
      `image: ${layers.length} layers are more than the ${SNAPSHOT_LIMITS.stackLayers} of one sandbox; export the snapshot and import it as one layer`,
    );
  const doubled = layers.find((digest, i) => layers.indexOf(digest) !== i);
  if (doubled) throw DsecError.of('INVALID_ARGUMENT', `layer ${doubled} is named twice; each layer may stand in a stack once`);
  const spec: SandboxSpec = {
    backend: request.backend,
    image: typeof image === 'object' ? (taken?.image ?? '') : image,
    layers,
    limits: { ...defaults, ...request.limits } as Limits,
    lives: { ...DEFAULT_LIVES, ...request.lives } as Lives,
    networkRules: request.networkRules,
    initUser: request.initUser,
    env: request.env,
    labels: request.labels,
    require: request.require,
    isolation: request.isolation,
    hostname: request.hostname ?? null,
    recordCommands: request.recordCommands,
    ...(share ? { share } : {}),
    recoveredFrom: taken && 'recoveredFrom' in taken ? taken.recoveredFrom : null,
  };
  const bytes = Buffer.byteLength(JSON.stringify(spec));
  if (bytes > WIRE_LIMITS.maxSpecBytes)
    throw DsecError.of(
      'PAYLOAD_TOO_LARGE',
      `spec: labels, env and layers together have ${bytes} bytes; the limit is ${WIRE_LIMITS.maxSpecBytes}. Put large values into a file`,
      {
        details: { field: 'spec', bytes, limitBytes: WIRE_LIMITS.maxSpecBytes },
      },
    );
  return { spec, forkedFrom: taken && 'forkedFrom' in taken ? taken.forkedFrom : null };
};

const oneLayer = async (resolve: Resolve, reference: string): Promise<LayerDigest> => {
  const [layer, ...more] = await resolve.stack(reference);
  if (layer && more.length === 0) return layer;
  throw DsecError.of('INVALID_ARGUMENT', `${reference} is a whole image of ${more.length + 1} layers and cannot stand above another; name it as the image`);
};
