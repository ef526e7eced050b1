/** Nothing of the platform can be found inside: no file, socket, log, name in the environment, descriptor or path of the host. @paper §6.4 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '#sdk/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { Lab } from './lab.ts';

let lab: Lab;
let box: Sandbox;
/** The name of a directory of the host; a file in it lies behind a loop device, as a layer does on some hosts. */
const hidden = mkdtempSync(join(tmpdir(), 'dsec-loophole-'));
let loop = '';

beforeAll(async () => {
  lab = await Lab.open();
  box = await lab.sandbox();
  writeFileSync(join(hidden, 'disk'), '');
  truncateSync(join(hidden, 'disk'), 1 << 20);
  loop = execFileSync('losetup', ['--find', '--show', join(hidden, 'disk')], { encoding: 'utf8' }).trim();
});
afterAll(async () => {
  if (loop) execFileSync('losetup', ['--detach', loop]);
  rmSync(hidden, { recursive: true, force: true });
  await lab?.close();
});

type Finds = { readonly files: number; of(kind: string): string[] };

/** A search for words through everything that root inside can see. */
const search = async (...words: string[]): Promise<Finds> => {
  const result = await box.exec(['/probe/search', ...words], { timeoutMs: 120_000 });
  expect(result.exitCode).toBe(0);
  const lines = result.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t') as [string, string]);
  const of = (kind: string): string[] => lines.filter(([k]) => k === kind).map(([, what]) => what);
  return { files: Number(of('files')[0]), of };
};

describe('a search through all names, links and contents', () => {
  test('finds no word of the platform and no path of the host', async () => {
    const words = ['dsec', 'nats', 'launcher', basename(lab.host.dir), basename(hidden), projectRoot()];
    const finds = await search(...words);
    expect(Object.fromEntries(words.map((word) => [word, finds.of(word)]))).toEqual(Object.fromEntries(words.map((word) => [word, []])));
    expect(finds.files).toBeGreaterThan(3_000);
    expect(readFileSync(`/sys/block/${basename(loop)}/loop/backing_file`, 'utf8')).toContain(basename(hidden)); // on the host it is there to be read
  });

  test('control: what is planted inside is found, in a name, a link, a file and a mount', async () => {
    await box.runShell('echo "a planted-word here" > /w/text; : > /w/planted-word; ln -s /nowhere/planted-word /w/link');
    expect((await search('planted-word')).of('planted-word').sort()).toEqual(['content of /w/text', 'name of /w/planted-word', 'target of /w/link']);
    expect((await search('/dev/mqueue')).of('/dev/mqueue').some((find) => find.startsWith('content of /proc') && find.endsWith('mountinfo'))).toBe(true);
  });

  test('finds no socket, no pipe, and no device but the harmless ones', async () => {
    const finds = await search('nothing');
    expect([finds.of('socket'), finds.of('fifo')]).toEqual([[], []]);
    const devices = finds.of('device').filter((path) => !path.startsWith('/proc/')); // there they lie over what is hidden
    expect(devices.sort()).toEqual(['/dev/full', '/dev/null', '/dev/pts/ptmx', '/dev/random', '/dev/tty', '/dev/urandom', '/dev/zero']);
  });

  test('what processes have open: the pipes of commands, nothing else', async () => {
    const other = await box.start('exec sleep 1000');
    const open = (await search('nothing')).of('open').map((what) => what.split(' ')[1] ?? '');
    expect(open.filter((target) => !target.startsWith('pipe:[') && !target.startsWith('/'))).toEqual([]);
    expect(open.filter((target) => target.startsWith('pipe:['))).toHaveLength(6);
    await other.kill();
  });
});

describe('a fresh command', () => {
  test('has an environment of its own, and nothing else in it', async () => {
    const names = (await box.exec(['env'])).stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    // the last two say how many processors the sandbox may use
    expect(names.sort()).toEqual(['GOMAXPROCS', 'HOME', 'LOGNAME', 'OMP_NUM_THREADS', 'PATH', 'USER'].sort());
  });

  test('sees no socket of the host, bound or abstract, and no process but those of its sandbox', async () => {
    expect((await box.runShell('cat /proc/net/unix | wc -l')).stdout.trim()).toBe('1'); // the heading
    expect(readFileSync('/proc/net/unix', 'utf8').split('\n').length).toBeGreaterThan(3);
    const processes = (await box.runShell('ls -d /proc/[0-9]*')).stdout.trim().split('\n');
    expect(processes.length).toBeLessThan(6);
    expect((await box.runShell('tr "\\0" " " < /proc/1/cmdline')).stdout).toMatch(/^aether \d+ $/);
  });

  test('belongs to control groups without names of the host', async () => {
    const groups = (await box.runShell('cut -d: -f3 /proc/self/cgroup /proc/1/cgroup')).stdout.trim().split('\n');
    expect(groups.filter((group) => !/^\/(\.\.|payload(\/[0-9a-f]+)?|agent)?$/.test(group))).toEqual([]);
  });
});
