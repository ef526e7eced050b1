/** The posix adapter against its contract, and what only processes can show: death while writing, writers at the same time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ImageName, LayerDigest } from '#bus/ids.ts';
import { digestOfBytes, layerStoreContract } from '#test/contract/layer-store.contract.ts';
import { PosixLayerStore } from './posix-layer-store.ts';
import { createTempFile, sweepTempFiles } from './temp-files.ts';

const projectRoot = fileURLToPath(new URL('../../..', import.meta.url));
const freshRoot = (): Promise<string> => mkdtemp(join(tmpdir(), 'dsec-layers-'));

layerStoreContract('posix', async () => {
  const root = await freshRoot();
  return { store: new PosixLayerStore({ dir: root }), close: () => rm(root, { recursive: true }) };
});

/** A second process that works on the store until it is told not to. Built, because Node does not run TypeScript. */
const WRITER = `
  import { PosixLayerStore } from ${JSON.stringify(fileURLToPath(new URL('./posix-layer-store.ts', import.meta.url)))};
  const [root, task, name, ...args] = process.argv.slice(2);
  const main = async () => {
    const store = new PosixLayerStore({ dir: root });
    process.stdout.write('ready\\n');
    if (task === 'put-and-name') for (const file of args) {
      const info = await store.put(file);
      await store.names.set({ name, digest: info.digest, kind: 'base', sizeBytes: info.sizeBytes, createdAt: 1, source: file });
      process.stdout.write(info.digest + '\\n');
    }
    if (task === 'rename') for (let i = 0; i < 100; i++)
      await store.names.set({ name, digest: args[i % args.length], kind: 'base', sizeBytes: i, createdAt: i, source: String(process.pid).repeat(50) });
  };
  main().catch((error) => { console.error(error.code ?? error); process.exitCode = 1; });
`;

describe('posix layer store among processes', () => {
  let scratch: string;
  let writer: string;
  beforeAll(async () => {
    scratch = await freshRoot();
    writer = join(scratch, 'writer.cjs');
    await build({
      stdin: { contents: WRITER, resolveDir: projectRoot, loader: 'ts' },
      outfile: writer,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      external: ['koffi'],
      logLevel: 'error',
    });
  });
  afterAll(() => rm(scratch, { recursive: true }));

  const startWriter = (...args: string[]): ChildProcess =>
    spawn(process.execPath, [writer, ...args], { env: { ...process.env, NODE_PATH: join(projectRoot, 'node_modules') }, stdio: ['ignore', 'pipe', 'inherit'] });

  test('a writer killed at any moment leaves only whole layers and whole records', { timeout: 60_000 }, async () => {
    const root = join(scratch, 'killed');
    const files: string[] = [];
    for (let i = 0; i < 12; i += 1) {
      const file = join(scratch, `image-${i}`);
      await writeFile(file, randomBytes(4_000_000));
      files.push(file);
    }
    for (let round = 0; round < 8; round += 1) {
      const child = startWriter(root, 'put-and-name', 'victim', ...files.slice(round));
      await once(child.stdout as NodeJS.ReadableStream, 'data');
      // Kills in the middle of a later copy: as soon as a temporary file is seen `round` times.
      for (let seen = 0; seen <= round && child.exitCode === null; ) {
        await new Promise((resolve) => setImmediate(resolve));
        if (readdirSync(join(root, 'tmp')).length > 0) seen += 1;
      }
      child.kill('SIGKILL');
      await once(child, 'close');

      const store = new PosixLayerStore({ dir: root });
      expect(await readdir(join(root, 'tmp'))).toEqual([]);
      for (const { digest } of await store.list()) expect(await store.verify(digest)).toBe('intact');
      for (const record of await store.names.list()) expect(store.has(record.digest)).toBe(true);
    }
  });

  test('opening the store spares a live writer and removes a dead one', async () => {
    const root = join(scratch, 'sweep');
    new PosixLayerStore({ dir: root });
    const temp = await createTempFile(join(root, 'tmp'));
    await writeFile(join(root, 'tmp', '.tmp-of-a-dead-writer'), 'half');
    expect(sweepTempFiles(join(root, 'tmp'))).toBe(1);
    expect(await readdir(join(root, 'tmp'))).toHaveLength(1);
    await temp.handle.close();
    expect(sweepTempFiles(join(root, 'tmp'))).toBe(1);
  });

  test('names written by several processes at once are whole at every moment', { timeout: 60_000 }, async () => {
    const root = join(scratch, 'catalogue');
    const store = new PosixLayerStore({ dir: root });
    const digests: LayerDigest[] = [];
    for (const body of ['first', 'second', 'third']) {
      const file = join(scratch, body);
      await writeFile(file, body);
      digests.push((await store.put(file)).digest);
    }
    const children = [0, 1, 2, 3].map((i) => startWriter(root, 'rename', i < 3 ? 'shared/name:1' : 'own', ...digests));
    const ends = Promise.all(children.map((child) => once(child, 'close')));
    let reads = 0;
    while (children.some((child) => child.exitCode === null && child.signalCode === null)) {
      const record = store.names.lookup('shared/name:1' as ImageName);
      if (record) expect(digests).toContain(record.digest);
      for (const listed of await store.names.list()) expect(digests).toContain(listed.digest);
      reads += 1;
    }
    await ends;
    expect(children.map((child) => child.exitCode)).toEqual([0, 0, 0, 0]);
    expect(reads).toBeGreaterThan(0);
    expect((await store.names.list()).map((record) => [record.name, record.sizeBytes])).toEqual([
      ['own', 99],
      ['shared/name:1', 99],
    ]);
    expect(await readdir(join(root, 'tmp'))).toEqual([]);
  });

  test('a layer whose bytes changed on disk is found out', async () => {
    const root = join(scratch, 'corrupt');
    const store = new PosixLayerStore({ dir: root });
    const file = join(scratch, 'sound');
    await writeFile(file, 'sound');
    const { digest } = await store.put(file);
    await writeFile(store.pathOf(digest), 'unsound', { flag: 'r+' });
    expect(await store.verify(digest)).toBe('corrupt');
    expect(digest).toBe(digestOfBytes(Buffer.from('sound')));
    await writeFile(store.pathOf(digest), '');
    expect(await store.verify(digest)).toBe('corrupt');
  });

  test('foreign files in the store are neither layers nor names', async () => {
    const root = join(scratch, 'foreign');
    const store = new PosixLayerStore({ dir: root });
    await writeFile(join(root, 'blobs', 'sha256', 'README.erofs'), 'not a layer');
    await writeFile(join(root, 'names', '.swp'), '');
    expect(await store.list()).toEqual([]);
    expect(await store.names.list()).toEqual([]);
    await writeFile(join(root, 'names', 'edited.json'), '{"name":');
    expect(() => store.names.lookup('edited' as ImageName)).toThrowError(/edited\.json is damaged/);
    await expect(store.names.list()).rejects.toThrowError(/edited\.json is damaged/);
  });

  test('a full disk is NO_SPACE, keeps what was there and leaves nothing behind', async () => {
    const root = join(scratch, 'full');
    const [small, large] = [join(scratch, 'small'), join(scratch, 'large')];
    await writeFile(small, randomBytes(1_000_000));
    await writeFile(large, randomBytes(12_000_000));
    await mkdir(root);
    const script = 'mount -t tmpfs -o size=8m none "$0" && "$@"; code=$?; find "$0" -type f -printf "left %f\\n"; exit $code';
    const child = spawn('unshare', ['--mount', 'sh', '-c', script, root, process.execPath, writer, root, 'put-and-name', 'disk', small, large], {
      env: { ...process.env, NODE_PATH: join(projectRoot, 'node_modules') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [output, errors] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    expect(errors.trim()).toBe('NO_SPACE');
    const digest = digestOfBytes(await readFile(small));
    expect(output.trim().split('\n').sort()).toEqual(['ready', digest, 'left disk.json', 'left lock', `left ${digest.slice(7)}.erofs`].sort());
  });
});
