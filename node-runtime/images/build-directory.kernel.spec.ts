/** Images of directories, built by the real tools and looked at through real mounts. */
import { execFile } from 'node:child_process';
import { link, lutimes, mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BuildRequest, buildLayer } from './build.ts';
import { type BuildBench, createBuildBench } from './testing/build-bench.ts';
import { inMounted, MANIFEST } from './testing/mounted.ts';
import { makeOdd, manifestOf } from './testing/odd-tree.ts';

const run = promisify(execFile);
let bench: BuildBench;
beforeAll(async () => {
  bench = await createBuildBench();
});
afterAll(() => bench.remove());

describe('from a directory', () => {
  test('everything about every file is in the image', async () => {
    const directory = await makeOdd(join(bench.scratch, 'odd'));
    const image = bench.pathOf(await bench.build({ type: 'directory', path: directory }));
    expect(await inMounted([image], MANIFEST)).toBe(await manifestOf(directory));
    expect(await inMounted([image], 'stat -c %i "$M/a" "$M/b" | sort -u | wc -l')).toBe('1\n');
  });

  test('the same files give the same digest, in whatever order they were made and whenever the image is', async () => {
    const [first, second] = [join(bench.scratch, 'same-1'), join(bench.scratch, 'same-2')];
    const names = Array.from({ length: 200 }, (_, i) => `file-${(i * 7919) % 1000}`);
    for (const [directory, order] of [
      [first, names],
      [second, [...names].reverse()],
    ] as const) {
      await mkdir(directory);
      for (const name of order) await writeFile(join(directory, name), name);
      await link(join(directory, 'file-0'), join(directory, 'hard'));
      await symlink('file-0', join(directory, 'soft'));
      await lutimes(join(directory, 'soft'), 1_000_000, 1_000_000);
      for (const name of [...names, '.']) await utimes(join(directory, name), 1_000_000, 1_000_000);
    }
    const digests = [first, second, first].map(async (path, i) => (await bench.build({ type: 'directory', path }, { name: `same/${i}` })).digest);
    expect(new Set(await Promise.all(digests)).size).toBe(1);
    const compressed = await bench.build({ type: 'directory', path: first }, { compression: 'lz4' });
    expect(compressed.digest).toBe((await bench.build({ type: 'directory', path: second }, { compression: 'lz4' })).digest);
    await writeFile(join(second, 'file-0'), 'changed');
    expect((await bench.build({ type: 'directory', path: second }, { compression: 'lz4' })).digest).not.toBe(compressed.digest);
  });

  test('a workspace belongs to root and lies at its prefix', async () => {
    const directory = join(bench.scratch, 'project');
    await mkdir(directory);
    await writeFile(join(directory, 'main.js'), '1');
    await run('chown', ['-R', '100000:70000', directory]);
    const record = await bench.build({ type: 'directory', path: directory, prefix: '/workspace/project' }, { kind: 'workspace' });
    expect(await inMounted([bench.pathOf(record)], 'cd "$M"; find . -printf "%p %U:%G %m\n" | sort')).toBe(
      ['. 0:0 755', './workspace 0:0 755', './workspace/project 0:0 755', './workspace/project/main.js 0:0 644', ''].join('\n'),
    );
    expect((await bench.build({ type: 'directory', path: directory, prefix: '/workspace/project' }, { kind: 'workspace' })).digest).toBe(record.digest);
  });

  test('an owner that no sandbox has is refused by name', async () => {
    const directory = join(bench.scratch, 'far-owner');
    await mkdir(join(directory, 'sub'), { recursive: true });
    await writeFile(join(directory, 'sub/file'), '');
    await run('chown', ['-h', '65536:0', join(directory, 'sub/file')]);
    await expect(bench.build({ type: 'directory', path: directory })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('/sub/file belongs to 65536:0'),
    });
    await expect(bench.build({ type: 'directory', path: directory }, { owners: 'root' })).resolves.toMatchObject({ kind: 'base' });
  });

  test('a toolkit that would hide the base’s programs is refused', async () => {
    const directory = join(bench.scratch, 'hiding');
    await mkdir(join(directory, 'bin'), { recursive: true });
    await writeFile(join(directory, 'bin/tool'), '');
    await expect(bench.build({ type: 'directory', path: directory }, { kind: 'toolkit' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('/usr/bin'),
    });
    await expect(bench.build({ type: 'directory', path: directory, prefix: '/opt/tool' }, { kind: 'toolkit' })).resolves.toMatchObject({ kind: 'toolkit' });
  });

  test.each<[string, Partial<BuildRequest>]>([
    ['a name that is none', { name: 'Not A Name' }],
    ['a directory that is not there', { source: { type: 'directory', path: '/no/such/directory' } }],
    ['a file for a directory', { source: { type: 'directory', path: '/etc/passwd' } }],
    ['a relative prefix', { source: { type: 'directory', path: '/etc/apt', prefix: 'workspace' } }],
    ['a prefix that climbs', { source: { type: 'directory', path: '/etc/apt', prefix: '/a/../../b' } }],
    ['an archive that is none', { source: { type: 'tar', path: '/etc/passwd' } }],
    ['an image that is none', { source: { type: 'erofs', path: '/etc/passwd' } }],
    ['a version that is a range', { source: { type: 'npm', name: 'x', version: '^1.0.0' } }],
    ['a package name that is an option', { source: { type: 'npm', name: '--version', version: '1.0.0' } }],
    ['a Debian package that is an option', { source: { type: 'mmdebstrap', include: ['--hook=x'] } }],
    ['a release that is none', { source: { type: 'mmdebstrap', suite: '../x' } }],
  ])('%s is refused before anything is made', async (_, request) => {
    const before = await bench.store.names.list();
    await expect(
      buildLayer(bench.store, { name: 'refused', kind: 'base', source: { type: 'directory', path: bench.scratch }, ...request }),
    ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await bench.store.names.list()).toEqual(before);
    expect(await bench.leftovers()).toEqual([]);
  });
});
