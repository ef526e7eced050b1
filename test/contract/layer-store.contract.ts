/** What every layer store promises, whatever it stands on. Run by each adapter's own spec file. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';

export type LayerStoreFixture = { readonly store: LayerStore; close(): Promise<void> };

export const digestOfBytes = (bytes: Uint8Array): LayerDigest => `sha256:${createHash('sha256').update(bytes).digest('hex')}` as LayerDigest;

export const layerStoreContract = (adapter: string, open: () => Promise<LayerStoreFixture>): void => {
  describe(`layer store contract: ${adapter}`, () => {
    let fixture: LayerStoreFixture;
    let store: LayerStore;
    let directory: string;

    beforeEach(async () => {
      fixture = await open();
      store = fixture.store;
      directory = await mkdtemp(join(tmpdir(), 'dsec-layer-contract-'));
    });
    afterEach(async () => {
      await fixture.close();
      await rm(directory, { recursive: true, force: true });
    });

    const fileOf = async (bytes: Uint8Array): Promise<string> => {
      const path = join(directory, randomBytes(6).toString('hex'));
      await writeFile(path, bytes);
      return path;
    };
    const recordOf = (name: string, digest: LayerDigest, overrides: Partial<ImageRecord> = {}): ImageRecord => ({
      name: name as ImageName,
      digest,
      kind: 'base',
      sizeBytes: 3,
      createdAt: 1_700_000_000_000 as TimestampMs,
      source: 'directory /srv/rootfs',
      ...overrides,
    });
    const bytesOf = async (digest: LayerDigest): Promise<Buffer> => Buffer.concat(await (await store.read(digest)).toArray());

    test('a layer is addressed by the SHA-256 of its bytes and reads back equal', async () => {
      const bytes = randomBytes(3 * 1024 * 1024 + 17);
      const info = await store.put(await fileOf(bytes));
      expect(info).toMatchObject({ digest: digestOfBytes(bytes), sizeBytes: bytes.byteLength });
      expect(store.has(info.digest)).toBe(true);
      expect((await bytesOf(info.digest)).equals(bytes)).toBe(true);
      expect((await readFile(store.pathOf(info.digest))).equals(bytes)).toBe(true);
      expect(await store.verify(info.digest)).toBe('intact');
    });

    test('put leaves the file alone, unless the store may consume it', async () => {
      const kept = await fileOf(Buffer.from('kept'));
      const consumed = await fileOf(Buffer.from('consumed'));
      await store.put(kept);
      const info = await store.put(consumed, { consume: true });
      expect(await readFile(kept, 'utf8')).toBe('kept');
      await expect(stat(consumed)).rejects.toMatchObject({ code: 'ENOENT' });
      expect((await bytesOf(info.digest)).toString()).toBe('consumed');
    });

    test('a digest that its writer knows names the same layer', async () => {
      const bytes = randomBytes(300_000);
      const digest = digestOfBytes(bytes);
      for (const consume of [false, true]) expect(await store.put(await fileOf(bytes), { consume, digest })).toMatchObject({ digest, sizeBytes: 300_000 });
      expect(await store.verify(digest)).toBe('intact');
      const gone = AbortSignal.abort();
      await expect(store.put(await fileOf(randomBytes(10)), { consume: true, digest: digestOfBytes(Buffer.from('x')), signal: gone })).rejects.toThrow();
    });

    test('a repeated put is the same layer with a renewed time', async () => {
      const file = await fileOf(Buffer.from('twice'));
      const first = await store.put(file);
      const second = await store.put(file);
      expect(second.digest).toBe(first.digest);
      expect(second.storedAt).toBeGreaterThanOrEqual(first.storedAt);
      expect(await store.list()).toEqual([second]);
    });

    test('puts of equal and of different bytes at the same time all succeed', async () => {
      const bodies = ['a', 'b', 'a', 'c', 'a', 'b'].map((letter) => Buffer.alloc(2_000_000, letter));
      const infos = await Promise.all(bodies.map(async (body) => store.put(await fileOf(body), { consume: true })));
      expect(infos.map((info) => info.digest)).toEqual(bodies.map(digestOfBytes));
      expect((await store.list()).map((info) => info.digest).sort()).toEqual([...new Set(bodies.map(digestOfBytes))].sort());
      for (const { digest } of infos) expect(await store.verify(digest)).toBe('intact');
    });

    test('what cannot be an image is refused and leaves nothing', async () => {
      await expect(store.put(join(directory, 'no-such-file'))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(store.put(directory)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(store.put(await fileOf(Buffer.alloc(0)))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(store.put(await fileOf(Buffer.from('x')), { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(await store.list()).toEqual([]);
    });

    test('an unknown digest is absent, and typed where bytes are asked for', async () => {
      const unknown = digestOfBytes(Buffer.from('never stored'));
      expect(store.has(unknown)).toBe(false);
      expect(await store.verify(unknown)).toBe('absent');
      expect(await store.delete(unknown)).toBe('absent');
      expect(() => store.pathOf(unknown)).toThrowError(expect.objectContaining({ code: 'LAYER_NOT_FOUND' }));
      await expect(store.read(unknown)).rejects.toMatchObject({ code: 'LAYER_NOT_FOUND' });
    });

    test('a bounded delete spares a layer that was put again', async () => {
      const file = await fileOf(Buffer.from('popular'));
      const { digest, storedAt } = await store.put(file);
      expect(await store.delete(digest, { storedBefore: storedAt })).toBe('kept');
      expect(await store.delete(digest, { storedBefore: (storedAt + 1) as TimestampMs })).toBe('deleted');
      expect(store.has(digest)).toBe(false);
      expect((await store.put(file)).digest).toBe(digest);
    });

    test('a layer that is renewed counts as put again', async () => {
      const { digest, storedAt } = await store.put(await fileOf(Buffer.from('renewed')));
      expect(await store.renew(digest)).toBe(true);
      expect((await store.list())[0]?.storedAt).toBeGreaterThanOrEqual(storedAt);
      expect(await store.delete(digest, { storedBefore: storedAt })).toBe('kept');
      expect(await store.renew(digestOfBytes(Buffer.from('never stored')))).toBe(false);
    });

    test('names are created, replaced, listed in order and removed', async () => {
      const first = (await store.put(await fileOf(Buffer.from('one')))).digest;
      const second = (await store.put(await fileOf(Buffer.from('two')))).digest;
      const longest = `${'a/'.repeat(94)}b:${'T'.repeat(10)}`;
      for (const name of ['debian', 'team/tool:1.2', 'team/tool', longest]) await store.names.set(recordOf(name, first));
      await store.names.set(recordOf('debian', second, { kind: 'workspace', source: 'replaced "quoted" ü' }));

      expect(store.names.lookup('debian' as ImageName)).toEqual(recordOf('debian', second, { kind: 'workspace', source: 'replaced "quoted" ü' }));
      expect(store.names.lookup('team/tool' as ImageName)?.digest).toBe(first);
      expect((await store.names.list()).map((record) => record.name)).toEqual([longest, 'debian', 'team/tool', 'team/tool:1.2']);
      expect(store.names.listNames(100).sort()).toEqual([longest, 'debian', 'team/tool', 'team/tool:1.2']);
      expect(store.names.listNames(2)).toHaveLength(2);

      expect(await store.names.delete('team/tool' as ImageName)).toBe(true);
      expect(await store.names.delete('team/tool' as ImageName)).toBe(false);
      expect(store.names.lookup('team/tool' as ImageName)).toBeNull();
      expect(store.names.lookup('team/tool:1.2' as ImageName)?.digest).toBe(first);
    });

    test('lookup sees every change at once, however fast they follow', async () => {
      const digests = await Promise.all(['x', 'y', 'z'].map(async (body) => (await store.put(await fileOf(Buffer.from(body)))).digest));
      for (let round = 0; round < 60; round += 1) {
        const digest = digests[round % digests.length] as LayerDigest;
        await store.names.set(recordOf('moving', digest));
        expect(store.names.lookup('moving' as ImageName)?.digest).toBe(digest);
        expect(store.names.lookup('moving' as ImageName)?.digest).toBe(digest);
      }
    });

    test('a name never points at a layer that is not there', async () => {
      await expect(store.names.set(recordOf('dangling', digestOfBytes(Buffer.from('absent'))))).rejects.toMatchObject({ code: 'LAYER_NOT_FOUND' });
      expect(store.names.lookup('dangling' as ImageName)).toBeNull();
    });
  });
};
