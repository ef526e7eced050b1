/** Images of archives, honest and forged, built by the real tools and looked at through real mounts. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ImageSource } from './build.ts';
import { type BuildBench, createBuildBench } from './testing/build-bench.ts';
import { FORGED_SECONDS, type ForgedEntry, forgeTar } from './testing/forge-tar.ts';
import { inMounted, MANIFEST } from './testing/mounted.ts';
import { makeOdd, manifestOf } from './testing/odd-tree.ts';

const run = promisify(execFile);
let bench: BuildBench;
beforeAll(async () => {
  bench = await createBuildBench();
});
afterAll(() => bench.remove());

describe('from an archive', () => {
  const archive = async (name: string, directory: string, ...flags: string[]): Promise<string> => {
    const file = join(bench.scratch, name);
    await run('tar', ['--create', '--force-local', `--file=${file}`, `--directory=${directory}`, '--auto-compress', ...flags, '.']);
    return file;
  };
  const forge = async (name: string, entries: readonly ForgedEntry[]): Promise<string> => {
    const file = join(bench.scratch, name);
    await writeFile(file, forgeTar(entries));
    return file;
  };

  test('everything about every file is in the image, compressed or not, with a colon in its name', async () => {
    const directory = await makeOdd(join(bench.scratch, 'odd-tar'));
    await rm(join(directory, '.wh.a'));
    const expected = await manifestOf(directory);
    const digests = new Set<string>();
    for (const name of ['odd.tar', 'odd:1.tar.gz', 'odd.tar.xz', 'odd.tar.zst']) {
      const record = await bench.build({ type: 'tar', path: await archive(name, directory, '--format=posix') });
      expect(await inMounted([bench.pathOf(record)], MANIFEST)).toBe(expected);
      digests.add(record.digest);
    }
    expect(digests.size).toBe(1);
  });

  test('file capabilities survive; attributes that only a host should set do not come in', async () => {
    const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex'); // cap_net_raw+ep
    const xattrs = { 'security.capability': capability, 'user.note': Buffer.from('kept'), 'trusted.overlay.opaque': Buffer.from('y') };
    const path = await forge('capability.tar', [{ name: 'ping', body: 'x', xattrs }]);
    const seen = await inMounted(
      [bench.pathOf(await bench.build({ type: 'tar', path }))],
      'cd "$M"; tar --create --format=posix --xattrs --xattrs-include="*" --file=- ping',
    );
    for (const [name, present] of [
      ['security.capability', true],
      ['user.note=kept', true],
      ['trusted.overlay', false],
    ] as const)
      expect(seen.includes(name)).toBe(present);
  });

  test('stripped and put at a prefix, directories that the archive does not list get a time of the archive', async () => {
    const path = await forge('package.tar', [
      { name: 'package/lib/index.js', body: 'x' },
      { name: 'package/lib/same.js', type: 'hard', link: 'package/lib/index.js' },
    ]);
    const source: ImageSource = { type: 'tar', path, stripComponents: 1, prefix: '/workspace/p' };
    const record = await bench.build(source, { kind: 'workspace' });
    const paths = ['.', './workspace', './workspace/p', './workspace/p/lib', './workspace/p/lib/index.js', './workspace/p/lib/same.js'];
    expect(await inMounted([bench.pathOf(record)], 'cd "$M"; find . -printf "%p %Ts\n" | sort')).toBe(paths.map((p) => `${p} ${FORGED_SECONDS}\n`).join(''));
    expect(await inMounted([bench.pathOf(record)], 'stat -c %h "$M/workspace/p/lib/same.js"')).toBe('2\n');
    expect((await bench.build(source, { kind: 'workspace' })).digest).toBe(record.digest);
    await expect(bench.build({ ...source, stripComponents: 3 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('package/lib/index.js would be lost'),
    });
    await expect(bench.build({ ...source, stripComponents: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test.each<[string, ForgedEntry[]]>([
    ['../evil', [{ name: 'ok.txt' }, { name: '../evil' }]],
    ['/abs/evil', [{ name: 'ok.txt' }, { name: '/abs/evil' }]],
    ['a/../../evil', [{ name: 'a/../../evil' }]],
    ['h', [{ name: 'h', type: 'hard', link: '../secret' }]],
    ['far', [{ name: 'far', uid: 1_000_000 }]],
    ['t/.wh.a', [{ name: 't/.wh.a' }]],
  ])('the entry %s is refused by name and nothing is unpacked', async (entry, entries) => {
    const path = await forge('evil.tar', entries);
    await expect(bench.build({ type: 'tar', path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(entry) });
    expect(await bench.leftovers()).toEqual([]);
  });

  test('nothing is written through a link that leads outside', async () => {
    const outside = join(bench.scratch, 'outside');
    await mkdir(outside);
    const path = await forge('through.tar', [
      { name: 'd', type: 'soft', link: outside },
      { name: 'd/evil', body: 'x' },
    ]);
    await expect(bench.build({ type: 'tar', path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await readdir(outside)).toEqual([]);
    const inside = await bench.build({
      type: 'tar',
      path: await forge('usrmerge.tar', [
        { name: 'usr/bin', type: 'directory' },
        { name: 'bin', type: 'soft', link: 'usr/bin' },
        { name: 'bin/tool', body: 'x' },
      ]),
    });
    expect(await inMounted([bench.pathOf(inside)], 'readlink "$M/bin"; cat "$M/usr/bin/tool"')).toBe('usr/bin\nx');
  });

  test('deletion marks of an OCI layer delete from the layers below, and only when asked to', async () => {
    const base = await bench.build({
      type: 'tar',
      path: await forge('base.tar', [
        { name: 'd/old', body: 'o' },
        { name: 'd/sub/older', body: 'o' },
        { name: 't/a', body: 'keep' },
        { name: 't/b', body: 'b' },
      ]),
    });
    const path = await forge('layer.tar', [
      { name: 't/.wh.a' },
      { name: 'd/.wh..wh..opq' },
      { name: 'd/sub', type: 'directory' },
      { name: 'd/new', body: 'n' },
      { name: 't/.wh.b' },
      { name: 't/b', body: 'again' },
    ]);
    const view = 'cd "$M"; find d t | sort; cat t/b';
    const deleting = await bench.build({ type: 'tar', path, whiteouts: 'oci' }, { kind: 'workspace', name: 'oci' });
    expect(await inMounted([bench.pathOf(base), bench.pathOf(deleting)], view)).toBe('d\nd/new\nd/sub\nt\nt/b\nagain');
    const keeping = await bench.build({ type: 'tar', path, whiteouts: 'keep' }, { kind: 'workspace', name: 'files' });
    expect(await inMounted([bench.pathOf(base), bench.pathOf(keeping)], 'cd "$M"; cat t/a; ls -A t d')).toBe(
      'keep' + 'd:\n.wh..wh..opq\nnew\nold\nsub\n\nt:\n.wh.a\n.wh.b\na\nb\n',
    );
  });

  test('an empty archive and a broken one are refused', async () => {
    await expect(bench.build({ type: 'tar', path: await forge('empty.tar', []) })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('is empty'),
    });
    const whole = await forge('whole.tar', [{ name: 'big', body: 'x'.repeat(100_000) }]);
    await writeFile(join(bench.scratch, 'cut.tar'), (await readFile(whole)).subarray(0, 50_000));
    await expect(bench.build({ type: 'tar', path: join(bench.scratch, 'cut.tar') })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await bench.leftovers()).toEqual([]);
  });

  test('an EROFS image comes in as it is', async () => {
    const made = await bench.build({ type: 'tar', path: await forge('for-import.tar', [{ name: 'x', body: 'x' }]) });
    const copy = join(bench.scratch, 'copy.erofs');
    await writeFile(copy, await readFile(bench.pathOf(made)));
    await chmod(copy, 0o600);
    expect((await bench.build({ type: 'erofs', path: copy }, { name: 'imported' })).digest).toBe(made.digest);
    expect(await readFile(copy)).toHaveLength(made.sizeBytes);
  });
});
