import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ImageRecord, LayerInfo } from '#actors/ports/layer-store.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { planGc } from './gc.ts';

const digests = Array.from({ length: 8 }, (_, i) => `sha256:${String(i).repeat(64)}` as LayerDigest);
const someDigests = fc.subarray(digests);
const layersOf = (ages: readonly number[]): LayerInfo[] =>
  ages.map((storedAt, i) => ({ digest: digests[i] as LayerDigest, sizeBytes: i, storedAt: storedAt as TimestampMs }));
const recordOf = (digest: LayerDigest): ImageRecord => ({
  name: 'n' as ImageName,
  digest,
  kind: 'base',
  sizeBytes: 0,
  createdAt: 0 as TimestampMs,
  source: '',
});

test('exactly the old layers that nothing refers to go, what one that stays stands on stays, and every layer is accounted for', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: digests.length }),
      someDigests,
      someDigests,
      someDigests,
      fc.integer({ min: 0, max: 100 }),
      (ages, named, live, data, before) => {
        const layers = layersOf(ages);
        const plan = planGc({
          layers,
          names: named.map(recordOf),
          live: new Set(live),
          dataFilesOf: (digest) => (digest === digests[0] ? data : []),
          storedBefore: before as TimestampMs,
        });
        const first = layers[0];
        const firstStays = first && (named.includes(first.digest) || live.includes(first.digest) || first.storedAt >= before);
        for (const layer of layers) {
          const referenced = named.includes(layer.digest) || live.includes(layer.digest) || (firstStays === true && data.includes(layer.digest));
          expect(plan.remove.includes(layer)).toBe(!referenced && layer.storedAt < before);
          expect(plan.spare.includes(layer)).toBe(!referenced && layer.storedAt >= before);
        }
        expect(plan.remove.length + plan.spare.length + plan.keptCount).toBe(layers.length);
      },
    ),
  );
});
