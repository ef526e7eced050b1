/**
 * Which layers a job's sandboxes begin with: a base shared by a few of them, and for two in three a workspace or a toolkit on top.
 * All come from the sets that a week of the paper's unit used; how often each of a set is drawn the paper does not say, so all are
 * equal. @paper §4, figure 3
 */
import type { LayerDigest } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import { hashOf, type Random } from '../kernel/random.ts';
import { imageFanOut, needsLayers } from './distributions.ts';

const SETS = { base: 11_266, workspace: 102_171, toolkit: 103 } as const;

export type ImageShare = { readonly sandboxes: number; readonly image: string; readonly layers: readonly LayerDigest[] };

/** Until all `sandboxes` have one. */
export function* imagesOf(random: Random, sandboxes: number): Generator<ImageShare> {
  for (let left = sandboxes; left > 0; ) {
    const share = Math.min(left, imageFanOut(random));
    const image = oneOf(random, 'base');
    const above = needsLayers(random) ? [oneOf(random, random.pick(['workspace', 'toolkit']))] : [];
    yield { sandboxes: share, image, layers: [image, ...above].map(digestOf) };
    left -= share;
  }
}

/** The rest of a spec is shared by all of a job's. */
export const withImage = (spec: SandboxSpec, { image, layers }: ImageShare): SandboxSpec => ({
  ...spec,
  image: image as SandboxSpec['image'],
  layers: [...layers],
});

const oneOf = (random: Random, set: keyof typeof SETS): string => `${set}-${random.between(1, SETS[set])}`;

const digestOf = (name: string): LayerDigest => {
  const part = (n: number) => hashOf(name, n).toString(16).padStart(8, '0');
  return `sha256:${Array.from({ length: 8 }, (_, n) => part(n + 1)).join('')}` as LayerDigest;
};
