/** Root file systems from this host's own Debian mirrors, and packages from its npm registry: the network is needed. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { buildLayer, type ImageSource } from './build.ts';
import { inMounted } from './testing/mounted.ts';

let scratch: string;
let store: PosixLayerStore;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'dsec-debian-'));
  store = new PosixLayerStore({ dir: join(scratch, 'layers') });
});
afterAll(() => rm(scratch, { recursive: true }));

const ESSENTIAL: ImageSource = { type: 'mmdebstrap', variant: 'essential', slim: true };
/** Mounts and processes that speak of this test's directory. */
const traces = async (): Promise<string[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const texts = await Promise.all([...pids.map((pid) => `/proc/${pid}/cmdline`), '/proc/self/mountinfo'].map((file) => readFile(file, 'utf8').catch(() => '')));
  return texts.filter((text) => text.includes(scratch));
};

describe('mmdebstrap', () => {
  test('the same packages give the same digest, and nothing of the host is inside', { timeout: 600_000 }, async () => {
    const lines: string[] = [];
    const first = await buildLayer(store, { name: 'first', kind: 'base', source: ESSENTIAL }, { onProgress: ({ detail }) => lines.push(detail) });
    const second = await buildLayer(store, { name: 'second', kind: 'base', source: ESSENTIAL });
    expect(second.digest).toBe(first.digest);
    expect(lines.some((line) => line.includes('essential packages'))).toBe(true);

    const image = store.pathOf(first.digest);
    const look = (script: string) => inMounted([image], `cd "$M"; ${script}`);
    expect(await look('find dev proc sys -mindepth 1')).toBe('');
    expect(await look('ls etc/hostname etc/apt/apt.conf.d/99mmdebstrap 2>/dev/null || true; cat etc/resolv.conf')).toBe('');
    expect(await look('cat etc/hosts')).toContain('127.0.0.1\tlocalhost');
    expect(await inMounted([image], 'find "$M/usr/share/doc" -type f ! -name copyright | head; ls "$M/usr/share/man" 2>/dev/null || true')).toBe('');
    expect(await inMounted([image], 'chroot "$M" /bin/sh -c "id -un; bash --version | head -n 1"')).toMatch(/^root\nGNU bash/);
    expect(await inMounted([image], 'find "$M" -uid +65535 -o -gid +65535')).toBe('');
  });

  test('cancelled in the middle, it leaves no process, no mount and no file', { timeout: 300_000 }, async () => {
    const abort = new AbortController();
    const source: ImageSource = { type: 'mmdebstrap', variant: 'essential' };
    const built = buildLayer(
      store,
      { name: 'cancelled', kind: 'base', source },
      { signal: abort.signal, onProgress: ({ detail }) => detail.startsWith('extracting') && abort.abort() },
    );
    await expect(built).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(await readdir(store.scratchDir)).toEqual([]);
    await expect.poll(traces, { timeout: 20_000 }).toEqual([]);
  });
});

describe('npm', () => {
  test('a package lies at its prefix, the same every time, with the dependencies that were asked for', { timeout: 300_000 }, async () => {
    const bare: ImageSource = { type: 'npm', name: 'source-map', version: '0.1.43' };
    const full: ImageSource = { ...bare, dependencies: 'production' };
    const [first, second] = [
      await buildLayer(store, { name: 'full', kind: 'workspace', source: full }),
      await buildLayer(store, { name: 'full', kind: 'workspace', source: full }),
    ];
    expect(second.digest).toBe(first.digest);
    expect(first.source).toMatch(/^npm source-map@0\.1\.43 sha512-/);
    expect(await inMounted([store.pathOf(first.digest)], 'cd "$M/workspace/source-map"; ls -A node_modules; stat -c %U:%G package.json')).toBe(
      'amdefine\nroot:root\n',
    );
    const alone = await buildLayer(store, { name: 'bare', kind: 'workspace', source: { ...bare, prefix: '/opt/sm' } });
    expect(await inMounted([store.pathOf(alone.digest)], 'cd "$M/opt/sm"; ls -d lib node_modules 2>/dev/null || true')).toBe('lib\n');
  });

  test('a version that does not exist is named', { timeout: 120_000 }, async () => {
    const source: ImageSource = { type: 'npm', name: 'source-map', version: '0.0.999' };
    await expect(buildLayer(store, { name: 'none', kind: 'workspace', source })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('source-map@0.0.999'),
    });
    expect(await readdir(store.scratchDir)).toEqual([]);
  });
});
