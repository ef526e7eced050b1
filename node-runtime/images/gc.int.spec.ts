import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { collectGarbage } from './gc.ts';
import { GC_LIMITS } from './limits.ts';

describe('garbage collection over a real store', () => {
  let directory: string;
  let store: PosixLayerStore;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dsec-gc-'));
    store = new PosixLayerStore({ dir: join(directory, 'layers') });
  });
  afterEach(() => rm(directory, { recursive: true }));

  const put = async (body: string): Promise<LayerDigest> => {
    const file = join(directory, body);
    await writeFile(file, body);
    return (await store.put(file)).digest;
  };
  const name = (text: string, digest: LayerDigest) =>
    store.names.set({ name: text as ImageName, digest, kind: 'base', sizeBytes: 1, createdAt: 1 as TimestampMs, source: '' });
  const later = (ms: number): TimestampMs => (Date.now() + ms) as TimestampMs;
  const remaining = async (): Promise<LayerDigest[]> => (await store.list()).map((layer) => layer.digest);

  test('names and live sandboxes hold their layers; the rest goes when it is old enough', async () => {
    const [named, live, stray] = [await put('named'), await put('live'), await put('stray')];
    await name('kept', named);
    const liveLayers = async () => new Set([live]);

    const young = await collectGarbage(store, { liveLayers, now: later(0) });
    expect([young.removed, young.spared.map((l) => l.digest), young.keptCount]).toEqual([[], [stray], 2]);

    const dry = await collectGarbage(store, { liveLayers, now: later(2 * GC_LIMITS.graceMs), dryRun: true });
    expect(dry.removed.map((l) => l.digest)).toEqual([stray]);
    expect(await remaining()).toHaveLength(3);

    const real = await collectGarbage(store, { liveLayers, now: later(2 * GC_LIMITS.graceMs) });
    expect(real).toMatchObject({ freedBytes: 5, keptCount: 2 });
    expect((await remaining()).sort()).toEqual([named, live].sort());

    await store.names.delete('kept' as ImageName);
    await collectGarbage(store, { liveLayers: async () => new Set(), now: later(2 * GC_LIMITS.graceMs) });
    expect(await remaining()).toEqual([]);
  });

  test('a layer that is put again while the collector looks elsewhere stays', async () => {
    const stray = await put('again');
    const { storedAt } = (await store.list())[0] as { storedAt: TimestampMs };
    const report = await collectGarbage(store, {
      now: (storedAt + 1) as TimestampMs,
      graceMs: 0,
      liveLayers: async () => {
        while ((await store.list())[0]?.storedAt === storedAt) await put('again');
        return new Set();
      },
    });
    expect(report.removed).toEqual([]);
    expect(await remaining()).toEqual([stray]);
  });

  test('nothing is removed when the live sandboxes are unknown', async () => {
    await put('precious');
    const liveLayers = () => Promise.reject(new Error('the platform does not answer'));
    await expect(collectGarbage(store, { liveLayers, now: later(1), graceMs: 0 })).rejects.toThrowError('does not answer');
    expect(await remaining()).toHaveLength(1);
  });
});
