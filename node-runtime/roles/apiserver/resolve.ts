/** Turns a client's request for a sandbox into the resolved spec: names to digests, defaults written out, limits checked. */
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { DEFAULT_LIVES, type Limits, type Lives, type SandboxRequest, type SandboxSpec } from '#bus/sandbox/spec.ts';

/** Looks a name or digest up in the layer catalogue; IMAGE_NOT_FOUND names near matches. */
export type ResolveLayer = (reference: string) => LayerDigest | Promise<LayerDigest>;

export const resolveSpec = async (request: SandboxRequest, resolve: ResolveLayer, defaults: Limits): Promise<SandboxSpec> => {
  if (request.backend !== 'container') throw DsecError.of('NOT_SUPPORTED', `backend ${request.backend} is not available in this version; use container`);
  const base = await resolve(request.image);
  const upper: LayerDigest[] = [];
  for (const reference of [...request.workspaces, ...request.toolkits]) upper.push(await resolve(reference));
  const layers = [base, ...upper];
  const doubled = layers.find((digest, i) => layers.indexOf(digest) !== i);
  if (doubled) throw DsecError.of('INVALID_ARGUMENT', `layer ${doubled} is named twice; each layer may stand in a stack once`);
  const spec: SandboxSpec = {
    backend: request.backend,
    image: request.image,
    layers,
    limits: { ...defaults, ...request.limits } as Limits,
    lives: { ...DEFAULT_LIVES, ...request.lives } as Lives,
    networkRules: request.networkRules,
    initUser: request.initUser,
    env: request.env,
    labels: request.labels,
    hostname: request.hostname ?? null,
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
  return spec;
};
