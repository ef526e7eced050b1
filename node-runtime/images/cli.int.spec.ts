/** `dsec image …` as a person or a script meets it: a process with its output, its exit code and its signals. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ImageRecord } from '#actors/ports/layer-store.ts';
import { bundleProgram, nodeEnv } from './testing/bundle.ts';

const PROGRAM = `
  import { Command } from 'commander';
  import { toWireError, ERRORS } from '#bus/errors.ts';
  import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
  import { registerImageCommands } from '#runtime/images/cli.ts';
  const program = new Command('dsec');
  const live = process.env.LIVE_LAYERS;
  registerImageCommands(program, {
    withStore: async (work) => work(new PosixLayerStore({ dir: process.env.LAYERS })),
    liveLayers: async () => { if (live === 'unknown') throw new Error('cannot tell'); return new Set(live ? live.split(',') : []); },
  });
  program.parseAsync().catch((thrown) => {
    const { code, message } = toWireError(thrown);
    process.stderr.write('dsec: ' + code + ': ' + message + '\\n');
    process.exitCode = ERRORS[code].exit;
  });
`;

let scratch: string;
let program: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'dsec-image-cli-'));
  program = join(scratch, 'dsec.cjs');
  await bundleProgram(PROGRAM, program);
  await mkdir(join(scratch, 'tree'));
  await writeFile(join(scratch, 'tree/file'), 'hello');
});
afterAll(() => rm(scratch, { recursive: true }));

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };
const envFor = (store: string, live = ''): NodeJS.ProcessEnv => ({ ...nodeEnv(), LAYERS: join(scratch, store), LIVE_LAYERS: live });
const dsec = (store: string, args: readonly string[], live?: string): Promise<Ended> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [program, 'image', ...args], { env: envFor(store, live) }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
const tree = (): string => join(scratch, 'tree');

describe('dsec image', () => {
  test('build, list, import, verify, remove, collect: one image through its life', async () => {
    const built = await dsec('life', ['build', 'team/app:1', '--from-dir', tree(), '--json']);
    expect(built.code).toBe(0);
    expect(built.stderr.split('\n').filter((line) => line.startsWith('team/app:1: packing'))).toHaveLength(1);
    const record = JSON.parse(built.stdout) as ImageRecord;
    expect(record).toMatchObject({ name: 'team/app:1', kind: 'workspace' });

    const blob = join(scratch, 'life/blobs/sha256', `${record.digest.slice(7)}.erofs`);
    expect((await dsec('life', ['import', blob, 'copy', '--kind', 'toolkit'])).code).toBe(0);
    const listed = JSON.parse((await dsec('life', ['ls', '--json'])).stdout) as ImageRecord[];
    expect(listed.map(({ name, kind, digest }) => [name, kind, digest])).toEqual([
      ['copy', 'toolkit', record.digest],
      ['team/app:1', 'workspace', record.digest],
    ]);
    expect((await dsec('life', ['ls'])).stdout).toMatch(/^NAME .*\ncopy +toolkit +sha256:[0-9a-f]{12} +\S+ KiB .*\nteam\/app:1 /);
    expect(await dsec('life', ['verify'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^intact/) });

    expect(await dsec('life', ['rm', 'copy', 'team/app:1'])).toMatchObject({ code: 0, stdout: expect.stringContaining('removed team/app:1') });
    expect((await dsec('life', ['gc'])).stdout).toMatch(/^freed 0 B in 0 layers; 0 in use, 1 too young\n$/);
    expect((await dsec('life', ['gc', '--grace', '0'], record.digest)).stdout).toMatch(/; 1 in use\n$/);
    expect((await dsec('life', ['gc', '--grace', '0', '--dry-run'])).stdout).toContain(`would remove ${record.digest}`);
    expect((await dsec('life', ['gc', '--grace', '0', '--json'])).stdout).toContain(record.digest);
    expect(await readdir(join(scratch, 'life/blobs/sha256'))).toEqual([]);
    expect((await dsec('life', ['ls'])).stdout).toContain('no images');
  });

  test('each mistake is one line that names it, and its own exit code', async () => {
    const cases: readonly (readonly [string[], number, string])[] = [
      [['build', 'x'], 2, 'exactly one of --from-dir'],
      [['build', 'x', '--from-dir', '/a', '--mmdebstrap'], 2, 'exactly one of --from-dir'],
      [['build', 'x', '--from-dir', '/no/such'], 2, '/no/such'],
      [['build', 'X!', '--from-dir', tree()], 2, 'X!'],
      [['build', 'x', '--from-npm', 'source-map'], 2, 'names no version'],
      [['build', 'x', '--from-tar', join(tree(), 'file'), '--strip-components', 'two'], 2, 'strip components'],
      [['import', join(tree(), 'file'), 'x'], 2, 'tree/file'],
      [['rm', 'absent'], 5, 'no image is named absent'],
      [['verify', 'absent'], 5, 'no image is named absent'],
      [['gc', '--grace', '-1'], 2, '--grace -1'],
    ];
    for (const [args, code, words] of cases) {
      const ended = await dsec('mistakes', args);
      expect([args, ended.code]).toEqual([args, code]);
      expect(ended.stderr.trim().split('\n').at(-1)).toContain(words);
      expect(ended.stdout).toBe('');
    }
  });

  test('several names are removed together or not at all', async () => {
    await dsec('together', ['build', 'one', '--from-dir', tree()]);
    expect((await dsec('together', ['rm', 'one', 'absent'])).code).toBe(5);
    expect((await dsec('together', ['ls'])).stdout).toContain('one ');
  });

  test('nothing is collected when the live sandboxes cannot be told', async () => {
    const { stdout } = await dsec('unknown', ['build', 'one', '--from-dir', tree(), '--json']);
    await dsec('unknown', ['rm', 'one']);
    expect((await dsec('unknown', ['gc', '--grace', '0'], 'unknown')).code).not.toBe(0);
    expect(await readdir(join(scratch, 'unknown/blobs/sha256'))).toEqual([`${(JSON.parse(stdout) as ImageRecord).digest.slice(7)}.erofs`]);
  });

  test('Ctrl-C ends a build with code 130 and leaves nothing', async () => {
    const large = join(scratch, 'large');
    await mkdir(large);
    for (let i = 0; i < 16; i += 1) await writeFile(join(large, `f${i}`), Buffer.alloc(8 * 1024 * 1024, i));
    const child = spawn(process.execPath, [program, 'image', 'build', 'big', '--from-dir', large, '--prefix', '/in'], {
      env: envFor('interrupted'),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    await once(child.stderr, 'data');
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
    expect(await readdir(join(scratch, 'interrupted/build'))).toEqual([]);
    expect(await readdir(join(scratch, 'interrupted/names'))).toEqual([]);
  });

  test.each([['build'], ['import'], ['ls'], ['rm'], ['verify'], ['gc']])('dsec image %s --help shows examples', async (command) => {
    const { code, stdout } = await dsec('help', [command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Examples:\n {2}dsec image/);
  });
});
