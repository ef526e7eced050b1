/** Images built by the real tools and looked at through real mounts. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, link, lutimes, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { ImageRecord } from '#actors/ports/layer-store.ts';
import type { ImageName } from '#bus/ids.ts';
import { type BuildOptions, type BuildRequest, buildLayer, type ImageSource } from './build.ts';
import { bundleProgram, nodeEnv } from './testing/bundle.ts';
import { FORGED_SECONDS, type ForgedEntry, forgeTar } from './testing/forge-tar.ts';
import { inMounted, MANIFEST } from './testing/mounted.ts';

const run = promisify(execFile);
let scratch: string;
let store: PosixLayerStore;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'dsec-images-'));
  store = new PosixLayerStore({ dir: join(scratch, 'layers') });
});
afterAll(() => rm(scratch, { recursive: true }));

const build = (source: ImageSource, extra: Partial<BuildRequest> = {}, options: BuildOptions = {}): Promise<ImageRecord> =>
  buildLayer(store, { name: 'image', kind: 'base', source, ...extra }, options);
const pathOf = (record: ImageRecord): string => store.pathOf(record.digest);
const leftovers = (): Promise<string[]> => readdir(store.scratchDir);

/** A directory with one of everything that copies are known to lose. */
const makeOdd = async (directory: string): Promise<string> => {
  await mkdir(directory);
  await run('sh', ['-euc', ODD], { cwd: directory });
  return directory;
};
const ODD = String.raw`
  echo hi > a; ln a b; ln -s a lnk; ln -s missing dangling; mkdir emptydir stk; chmod 1777 stk
  cp /bin/true su; chown 1234:5678 su; chmod 4755 su; mkfifo ff; echo z > zero; chmod 0000 zero
  mkdir "sp ace"; echo x > "sp ace/new
line"; echo x > "$(printf 'b\377ad')"; : > .wh.a; mkdir -p deep/er/est
  touch -d '2001-02-03T04:05:06.789Z' a; touch -h -d '2002-02-02T02:02:02Z' lnk; touch -d '2003-03-03T03:03:03.000000001Z' deep/er
`;
const manifestOf = async (directory: string): Promise<string> => (await run('sh', ['-euc', `M='${directory}'; ${MANIFEST}`])).stdout;

describe('from a directory', () => {
  test('everything about every file is in the image', async () => {
    const directory = await makeOdd(join(scratch, 'odd'));
    const image = pathOf(await build({ type: 'directory', path: directory }));
    expect(await inMounted([image], MANIFEST)).toBe(await manifestOf(directory));
    expect(await inMounted([image], 'stat -c %i "$M/a" "$M/b" | sort -u | wc -l')).toBe('1\n');
  });

  test('the same files give the same digest, in whatever order they were made and whenever the image is', async () => {
    const [first, second] = [join(scratch, 'same-1'), join(scratch, 'same-2')];
    const names = Array.from({ length: 200 }, (_, i) => `file-${(i * 7919) % 1000}`);
    for (const [directory, order] of [[first, names], [second, [...names].reverse()]] as const) {
      await mkdir(directory);
      for (const name of order) await writeFile(join(directory, name), name);
      await link(join(directory, 'file-0'), join(directory, 'hard'));
      await symlink('file-0', join(directory, 'soft'));
      await lutimes(join(directory, 'soft'), 1_000_000, 1_000_000);
      for (const name of [...names, '.']) await utimes(join(directory, name), 1_000_000, 1_000_000);
    }
    const digests = [first, second, first].map(async (path, i) => (await build({ type: 'directory', path }, { name: `same/${i}` })).digest);
    expect(new Set(await Promise.all(digests)).size).toBe(1);
    const compressed = await build({ type: 'directory', path: first }, { compression: 'lz4' });
    expect(compressed.digest).toBe((await build({ type: 'directory', path: second }, { compression: 'lz4' })).digest);
    await writeFile(join(second, 'file-0'), 'changed');
    expect((await build({ type: 'directory', path: second }, { compression: 'lz4' })).digest).not.toBe(compressed.digest);
  });

  test('a workspace belongs to root and lies at its prefix', async () => {
    const directory = join(scratch, 'project');
    await mkdir(directory);
    await writeFile(join(directory, 'main.js'), '1');
    await run('chown', ['-R', '100000:70000', directory]);
    const record = await build({ type: 'directory', path: directory, prefix: '/workspace/project' }, { kind: 'workspace' });
    expect(await inMounted([pathOf(record)], 'cd "$M"; find . -printf "%p %U:%G %m\n" | sort')).toBe(
      ['. 0:0 755', './workspace 0:0 755', './workspace/project 0:0 755', './workspace/project/main.js 0:0 644', ''].join('\n'),
    );
    expect((await build({ type: 'directory', path: directory, prefix: '/workspace/project' }, { kind: 'workspace' })).digest).toBe(record.digest);
  });

  test('an owner that no sandbox has is refused by name', async () => {
    const directory = join(scratch, 'far-owner');
    await mkdir(join(directory, 'sub'), { recursive: true });
    await writeFile(join(directory, 'sub/file'), '');
    await run('chown', ['-h', '65536:0', join(directory, 'sub/file')]);
    await expect(build({ type: 'directory', path: directory })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('/sub/file belongs to 65536:0') });
    await expect(build({ type: 'directory', path: directory }, { owners: 'root' })).resolves.toMatchObject({ kind: 'base' });
  });

  test('a toolkit that would hide the base’s programs is refused', async () => {
    const directory = join(scratch, 'hiding');
    await mkdir(join(directory, 'bin'), { recursive: true });
    await writeFile(join(directory, 'bin/tool'), '');
    await expect(build({ type: 'directory', path: directory }, { kind: 'toolkit' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('/usr/bin') });
    await expect(build({ type: 'directory', path: directory, prefix: '/opt/tool' }, { kind: 'toolkit' })).resolves.toMatchObject({ kind: 'toolkit' });
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
    const before = await store.names.list();
    await expect(buildLayer(store, { name: 'refused', kind: 'base', source: { type: 'directory', path: scratch }, ...request })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await store.names.list()).toEqual(before);
    expect(await leftovers()).toEqual([]);
  });
});

describe('from an archive', () => {
  const archive = async (name: string, directory: string, ...flags: string[]): Promise<string> => {
    const file = join(scratch, name);
    await run('tar', ['--create', '--force-local', `--file=${file}`, `--directory=${directory}`, '--auto-compress', ...flags, '.']);
    return file;
  };
  const forge = async (name: string, entries: readonly ForgedEntry[]): Promise<string> => {
    const file = join(scratch, name);
    await writeFile(file, forgeTar(entries));
    return file;
  };

  test('everything about every file is in the image, compressed or not, with a colon in its name', async () => {
    const directory = await makeOdd(join(scratch, 'odd-tar'));
    await rm(join(directory, '.wh.a'));
    const expected = await manifestOf(directory);
    const digests = new Set<string>();
    for (const name of ['odd.tar', 'odd:1.tar.gz', 'odd.tar.xz', 'odd.tar.zst']) {
      const record = await build({ type: 'tar', path: await archive(name, directory, '--format=posix') });
      expect(await inMounted([pathOf(record)], MANIFEST)).toBe(expected);
      digests.add(record.digest);
    }
    expect(digests.size).toBe(1);
  });

  test('file capabilities survive; attributes that only a host should set do not come in', async () => {
    const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex'); // cap_net_raw+ep
    const xattrs = { 'security.capability': capability, 'user.note': Buffer.from('kept'), 'trusted.overlay.opaque': Buffer.from('y') };
    const path = await forge('capability.tar', [{ name: 'ping', body: 'x', xattrs }]);
    const seen = await inMounted([pathOf(await build({ type: 'tar', path }))], 'cd "$M"; tar --create --format=posix --xattrs --xattrs-include="*" --file=- ping');
    for (const [name, present] of [['security.capability', true], ['user.note=kept', true], ['trusted.overlay', false]] as const) expect(seen.includes(name)).toBe(present);
  });

  test('stripped and put at a prefix, directories that the archive does not list get a time of the archive', async () => {
    const path = await forge('package.tar', [{ name: 'package/lib/index.js', body: 'x' }, { name: 'package/lib/same.js', type: 'hard', link: 'package/lib/index.js' }]);
    const source: ImageSource = { type: 'tar', path, stripComponents: 1, prefix: '/workspace/p' };
    const record = await build(source, { kind: 'workspace' });
    const paths = ['.', './workspace', './workspace/p', './workspace/p/lib', './workspace/p/lib/index.js', './workspace/p/lib/same.js'];
    expect(await inMounted([pathOf(record)], 'cd "$M"; find . -printf "%p %Ts\n" | sort')).toBe(paths.map((p) => `${p} ${FORGED_SECONDS}\n`).join(''));
    expect(await inMounted([pathOf(record)], 'stat -c %h "$M/workspace/p/lib/same.js"')).toBe('2\n');
    expect((await build(source, { kind: 'workspace' })).digest).toBe(record.digest);
    await expect(build({ ...source, stripComponents: 3 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('package/lib/index.js would be lost') });
    await expect(build({ ...source, stripComponents: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
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
    await expect(build({ type: 'tar', path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(entry) });
    expect(await leftovers()).toEqual([]);
  });

  test('nothing is written through a link that leads outside', async () => {
    const outside = join(scratch, 'outside');
    await mkdir(outside);
    const path = await forge('through.tar', [{ name: 'd', type: 'soft', link: outside }, { name: 'd/evil', body: 'x' }]);
    await expect(build({ type: 'tar', path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await readdir(outside)).toEqual([]);
    const inside = await build({ type: 'tar', path: await forge('usrmerge.tar', [{ name: 'usr/bin', type: 'directory' }, { name: 'bin', type: 'soft', link: 'usr/bin' }, { name: 'bin/tool', body: 'x' }]) });
    expect(await inMounted([pathOf(inside)], 'readlink "$M/bin"; cat "$M/usr/bin/tool"')).toBe('usr/bin\nx');
  });

  test('deletion marks of an OCI layer delete from the layers below, and only when asked to', async () => {
    const base = await build({ type: 'tar', path: await forge('base.tar', [{ name: 'd/old', body: 'o' }, { name: 'd/sub/older', body: 'o' }, { name: 't/a', body: 'keep' }, { name: 't/b', body: 'b' }]) });
    const path = await forge('layer.tar', [
      { name: 't/.wh.a' },
      { name: 'd/.wh..wh..opq' },
      { name: 'd/sub', type: 'directory' },
      { name: 'd/new', body: 'n' },
      { name: 't/.wh.b' },
      { name: 't/b', body: 'again' },
    ]);
    const view = 'cd "$M"; find d t | sort; cat t/b';
    const deleting = await build({ type: 'tar', path, whiteouts: 'oci' }, { kind: 'workspace', name: 'oci' });
    expect(await inMounted([pathOf(base), pathOf(deleting)], view)).toBe('d\nd/new\nd/sub\nt\nt/b\nagain');
    const keeping = await build({ type: 'tar', path, whiteouts: 'keep' }, { kind: 'workspace', name: 'files' });
    expect(await inMounted([pathOf(base), pathOf(keeping)], 'cd "$M"; cat t/a; ls -A t d')).toBe('keep' + 'd:\n.wh..wh..opq\nnew\nold\nsub\n\nt:\n.wh.a\n.wh.b\na\nb\n');
  });

  test('an empty archive and a broken one are refused', async () => {
    await expect(build({ type: 'tar', path: await forge('empty.tar', []) })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('is empty') });
    const whole = await forge('whole.tar', [{ name: 'big', body: 'x'.repeat(100_000) }]);
    await writeFile(join(scratch, 'cut.tar'), (await readFile(whole)).subarray(0, 50_000));
    await expect(build({ type: 'tar', path: join(scratch, 'cut.tar') })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await leftovers()).toEqual([]);
  });

  test('an EROFS image comes in as it is', async () => {
    const made = await build({ type: 'tar', path: await forge('for-import.tar', [{ name: 'x', body: 'x' }]) });
    const copy = join(scratch, 'copy.erofs');
    await writeFile(copy, await readFile(pathOf(made)));
    await chmod(copy, 0o600);
    expect((await build({ type: 'erofs', path: copy }, { name: 'imported' })).digest).toBe(made.digest);
    expect(await readFile(copy)).toHaveLength(made.sizeBytes);
  });
});

describe('a build that does not end well', () => {
  const BUILDER = `
    import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
    import { buildLayer } from '#runtime/images/mod.ts';
    const [dir, name, path] = process.argv.slice(2);
    buildLayer(new PosixLayerStore({ dir }), { name, kind: 'base', source: { type: 'directory', path, prefix: '/in' } }, { onProgress: ({ step }) => process.stdout.write(step + '\\n') })
      .then((record) => process.stdout.write(record.digest + '\\n'), (error) => { process.stdout.write('failed ' + error.code + '\\n'); });
  `;
  let builder: string;
  let large: string;
  beforeAll(async () => {
    builder = join(scratch, 'builder.cjs');
    await bundleProgram(BUILDER, builder);
    large = join(scratch, 'large');
    await mkdir(large);
    for (let i = 0; i < 24; i += 1) await writeFile(join(large, `f${i}`), Buffer.alloc(4 * 1024 * 1024, i));
  });

  const startBuilder = (dir: string, name: string): ChildProcess => spawn(process.execPath, [builder, dir, name, large], { env: nodeEnv(), stdio: ['ignore', 'pipe', 'inherit'] });
  const sawStep = async (child: ChildProcess, step: string): Promise<void> => {
    for await (const [chunk] of iterate(child)) if (String(chunk).split('\n').includes(step)) return;
    throw new Error(`the builder ended before ${step}`);
  };
  async function* iterate(child: ChildProcess): AsyncGenerator<[Buffer]> {
    while (child.exitCode === null) yield (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  }
  /** Processes whose command line speaks of this test's directory. */
  const processesOf = async (dir: string): Promise<string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return commands.filter((command) => command.includes(dir)).map((command) => command.replaceAll('\0', ' '));
  };

  test('killed at any step, it takes its tools along, and the next build removes what it left', async () => {
    const dir = join(scratch, 'killed');
    for (const step of ['unpacking', 'checking', 'packing', 'storing']) {
      const child = startBuilder(dir, 'victim');
      await sawStep(child, step);
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    await expect.poll(() => processesOf(dir), { timeout: 20_000 }).toEqual([]);
    const second = new PosixLayerStore({ dir });
    const record = await buildLayer(second, { name: 'victim', kind: 'base', source: { type: 'directory', path: large, prefix: '/in' } });
    expect(await second.verify(record.digest)).toBe('intact');
    expect(await readdir(second.scratchDir)).toEqual([]);
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
  });

  test('cancelled at any step, it leaves the old image and no file', async () => {
    const small = join(scratch, 'small');
    await mkdir(small);
    await writeFile(join(small, 'f'), 'old');
    const old = await build({ type: 'directory', path: small }, { name: 'replaced' });
    for (const step of ['waiting-never', 'unpacking', 'checking', 'packing', 'storing']) {
      const abort = new AbortController();
      if (step === 'waiting-never') abort.abort();
      const built = build({ type: 'directory', path: large, prefix: '/in' }, { name: 'replaced' }, { signal: abort.signal, onProgress: (p) => p.step === step && abort.abort() });
      await expect(built).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(await leftovers()).toEqual([]);
      expect(store.names.lookup('replaced' as ImageName)).toEqual(old);
    }
  });

  test('one name is built by one process at a time', async () => {
    const dir = join(scratch, 'twice');
    const children = [startBuilder(dir, 'same'), startBuilder(dir, 'same')];
    const outputs = await Promise.all(children.map((child) => textOf(child.stdout as NodeJS.ReadableStream)));
    const steps = outputs.map((output) => output.trim().split('\n'));
    expect(steps.filter((s) => s.includes('waiting'))).toHaveLength(1);
    expect(new Set(steps.map((s) => s.at(-1))).size).toBe(1);
    expect(steps[0]?.at(-1)).toMatch(/^sha256:/);
    expect(await readdir(join(dir, 'build'))).toEqual([]);
  });

  test('on a full disk it is NO_SPACE and leaves no file', async () => {
    const dir = join(scratch, 'full');
    await mkdir(dir);
    const script = 'mount -t tmpfs -o size=48m none "$0"; "$@"; find "$0" -type f -size +0';
    const { stdout } = await run('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', script, dir, process.execPath, builder, dir, 'big', large], { env: nodeEnv() });
    expect(stdout.trim().split('\n').at(-1)).toBe('failed NO_SPACE');
  });
});
