/** The parts of an OCI image layout that are written and read here: image specification 1.1. */
import { z } from 'zod';

export const MEDIA = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const;
/** Layers that GNU tar unpacks; Docker's names for the same are taken too. */
export const LAYER_MEDIA: ReadonlySet<string> = new Set([
  MEDIA.layer,
  `${MEDIA.layer}+gzip`,
  `${MEDIA.layer}+zstd`,
  'application/vnd.docker.image.rootfs.diff.tar.gzip',
]);
export const MANIFEST_MEDIA: ReadonlySet<string> = new Set([MEDIA.manifest, 'application/vnd.docker.distribution.manifest.v2+json']);
export const INDEX_MEDIA: ReadonlySet<string> = new Set([MEDIA.index, 'application/vnd.docker.distribution.manifest.list.v2+json']);

const BlobDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'only sha256 digests are known');
export const Descriptor = z.object({
  mediaType: z.string(),
  digest: BlobDigest,
  size: z.number().int().nonnegative(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
});
export type Descriptor = z.infer<typeof Descriptor>;
export const Index = z.object({ manifests: z.array(Descriptor).min(1).max(1_000) });
export const Manifest = z.object({ layers: z.array(Descriptor).min(1).max(128) });

/** Node's name of this machine's architecture, in the words of OCI. */
export const ociArchitecture = (arch: string = process.arch): string => ({ x64: 'amd64', ia32: '386' })[arch] ?? arch;
