import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { LayerCatalog } from './catalog.ts';

describe('catalogue', () => {
  let directory: string;
  let store: PosixLayerStore;
  let digest: LayerDigest;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dsec-catalog-'));
    store = new PosixLayerStore({ dir: join(directory, 'layers') });
    await writeFile(join(directory, 'image'), 'image');
    digest = (await store.put(join(directory, 'image'))).digest;
    for (const name of ['debian:12', 'team/tools'])
      await store.names.set({ name: name as ImageName, digest, kind: 'base', sizeBytes: 5, createdAt: 1 as TimestampMs, source: '' });
  });
  afterEach(() => rm(directory, { recursive: true }));

  const refusal = (reference: string) => {
    try {
      return new LayerCatalog(store).resolve(reference);
    } catch (error) {
      return { code: (error as { code: string }).code, message: (error as Error).message };
    }
  };

  test('a name means what it names, a digest itself, to every process that looks', () => {
    expect(refusal('debian:12')).toBe(digest);
    expect(refusal('team/tools')).toBe(digest);
    expect(refusal(digest)).toBe(digest);
    expect(new LayerCatalog(new PosixLayerStore({ dir: join(directory, 'layers') })).resolve('debian:12')).toBe(digest);
  });

  test('an unknown name is refused with what may have been meant', () => {
    expect(refusal('debian:13')).toEqual({ code: 'IMAGE_NOT_FOUND', message: 'no image is named debian:13; did you mean debian:12?' });
    expect(refusal('tools')).toMatchObject({ code: 'IMAGE_NOT_FOUND', message: expect.stringContaining('team/tools') });
    expect(refusal('nothing-like-it')).toMatchObject({ code: 'IMAGE_NOT_FOUND', message: expect.stringContaining('dsec image ls') });
  });

  test('a layer that is not in the store is refused by name and by digest', async () => {
    await store.delete(digest);
    expect(refusal(digest)).toMatchObject({ code: 'LAYER_NOT_FOUND' });
    expect(refusal('debian:12')).toMatchObject({ code: 'LAYER_NOT_FOUND', message: expect.stringContaining('debian:12') });
  });

  test.each(['', 'Debian', '../../etc/passwd', 'a b', 'sha256:beef', `sha256:${'A'.repeat(64)}`, 'x'.repeat(300), 'a\nb'])(
    '%j is no reference',
    (reference) => {
      expect(refusal(reference)).toMatchObject({ code: expect.stringMatching(/^(INVALID_ARGUMENT|IMAGE_NOT_FOUND)$/) });
    },
  );
});
