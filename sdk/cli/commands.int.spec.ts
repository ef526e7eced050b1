/** The client commands as a shell uses them: real processes, real streams, exit codes, signals. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { wireError } from '#bus/errors.ts';
import { type TestNatsServer, startNatsServer } from '#test/helpers/nats-server.ts';
import { FakePlatform } from '../testing/fake-platform.ts';
import { PROJECT } from '../testing/records.ts';

let server: TestNatsServer;
let platform: FakePlatform;
let dir: string;
let program: string;
let context: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-cli-'));
  program = join(dir, 'dsec.mjs');
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  const entry = join(import.meta.dirname, '../testing/program.ts');
  await build({ entryPoints: [entry], outfile: program, bundle: true, platform: 'node', format: 'esm', target: 'node20', banner });
  server = await startNatsServer();
  context = join(dir, 'context.json');
  writeFileSync(context, JSON.stringify({ servers: [server.url], project: PROJECT }));
});
beforeEach(async () => {
  platform = await FakePlatform.start(server.url);
  return () => platform.stop();
});
afterAll(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

type Ended = { readonly code: number | null; readonly out: string; readonly bytes: Buffer; readonly err: string };

const start = (...words: readonly string[]): ChildProcess =>
  spawn(process.execPath, [program, ...words], { env: { ...process.env, DSEC_CONTEXT: context }, stdio: 'pipe' });
const endOf = async (child: ChildProcess): Promise<Ended> => {
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out: Buffer.concat(out).toString(), bytes: Buffer.concat(out), err: Buffer.concat(err).toString() };
};
const dsec = (...words: readonly string[]): Promise<Ended> => endOf(start(...words));
const newBox = async (...options: readonly string[]): Promise<string> => (await dsec('run', ...options, 'debian')).out.trim();

describe('run', () => {
  test('prints an id, or runs a command and stops the sandbox', async () => {
    expect(await newBox()).toMatch(/^sb-0-/);
    const ran = await dsec('run', 'debian', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3');
    expect(ran).toMatchObject({ code: 3, out: 'out\n', err: 'err\n' });
    expect(platform.count('stop')).toBe(1);
  });

  test('--keep leaves it, --rm forgets it', async () => {
    expect((await dsec('run', '--keep', 'debian', 'true')).err).toMatch(/^dsec: sandbox sb-\S+ goes on/);
    expect((await dsec('run', '--rm', 'debian', 'true')).code).toBe(0);
    expect([platform.count('stop'), platform.count('delete')]).toEqual([0, 1]);
  });

  test('--count makes a group and runs the command in each', async () => {
    expect((await newBox('-n', '3')).split('\n')).toHaveLength(3);
    const ran = await dsec('run', '--json', '-n', '3', 'debian', 'echo', 'hi');
    expect(
      ran.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).stdout),
    ).toEqual(['hi\n', 'hi\n', 'hi\n']);
    platform.faults.fail = (index) => (index === 1 ? wireError('START_FAILED', 'no') : undefined);
    expect(await dsec('run', '-n', '3', 'debian')).toMatchObject({ code: 9, err: 'dsec: START_FAILED: sandbox 1: no\n' });
  });

  test('an interrupted create ends what it makes', async () => {
    platform.faults.publish = (commit) => (commit.kind === 'request' ? 'once' : 'never');
    let answering = false;
    platform.faults.answer = (name) => (name === 'get' && !answering ? 'silent' : 'answer');
    const child = start('run', '-n', '3', 'debian');
    const ended = endOf(child);
    await expect.poll(() => platform.count('get'), { timeout: 15_000 }).toBeGreaterThan(0);
    child.kill('SIGINT');
    await once(child.stderr as NodeJS.ReadableStream, 'data');
    answering = true;
    expect(await ended).toMatchObject({ code: 130, out: '', err: expect.stringContaining('CANCELLED: interrupted') });
    expect(platform.count('stop')).toBe(3);
  });

  test('many commands end with the worst exit code', async () => {
    expect(await dsec('run', '-n', '2', 'debian', '--', 'sh', '-c', 'exit 9')).toMatchObject({ code: 9 });
  });

  test('-i passes our stdin on', async () => {
    const child = start('run', '-i', 'debian', 'wc', '-c');
    child.stdin?.end(Buffer.alloc(1_000_000));
    expect((await endOf(child)).out.trim()).toBe('1000000');
  });
});

describe('exec', () => {
  test('bytes pass unchanged; options of the command are its own', async () => {
    const box = await newBox();
    expect([...(await dsec('exec', box, '--', 'printf', '\\377\\000A')).bytes]).toEqual([0xff, 0x00, 0x41]);
    expect((await dsec('exec', box, 'head', '-c', '2', '--', '/dev/zero')).bytes.byteLength).toBe(2);
    expect((await dsec('exec', box, 'seq', '1', '200000')).bytes.byteLength).toBe(1_288_895);
    expect(JSON.parse((await dsec('exec', '--json', box, 'echo', 'hi')).out)).toMatchObject({ sandboxId: box, exitCode: 0, stdout: 'hi\n', truncated: false });
  });

  test('exit codes: its own, by signal, by time-out', async () => {
    const box = await newBox();
    expect((await dsec('exec', box, 'sh', '-c', 'exit 255')).code).toBe(255);
    expect((await dsec('exec', box, 'sh', '-c', 'kill -SEGV $$')).code).toBe(139);
    expect(await dsec('exec', '--timeout', '0.05', box, 'sleep', '30')).toMatchObject({ code: 124, err: expect.stringContaining('time limit') });
  });

  test('Ctrl-C reaches the command; a second one kills it', async () => {
    const box = await newBox();
    const polite = start('exec', box, '--', 'sh', '-c', 'trap "echo bye; exit 5" INT; echo ready; while :; do sleep 0.05; done');
    const ended = endOf(polite);
    await once(polite.stdout as NodeJS.ReadableStream, 'data');
    polite.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 5, out: 'ready\nbye\n' });
    const stubborn = start('exec', box, '--', 'sh', '-c', 'trap "echo no" INT; echo ready; while :; do sleep 0.05; done');
    const killed = endOf(stubborn);
    await once(stubborn.stdout as NodeJS.ReadableStream, 'data');
    stubborn.kill('SIGINT');
    await once(stubborn.stdout as NodeJS.ReadableStream, 'data');
    stubborn.kill('SIGINT');
    expect([130, 137]).toContain((await killed).code);
  });

  test('a reader that leaves ends an endless command quietly', async () => {
    const box = await newBox();
    const child = start('exec', box, 'yes');
    let err = '';
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk));
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.stdout?.destroy();
    expect(((await once(child, 'exit')) as [number])[0]).toBe(141);
    expect(err).toBe('');
    expect(JSON.parse((await dsec('ps', '--json', box)).out)).toMatchObject({ state: 'ended', signal: 'KILL' });
  });

  test('detached, then its log', async () => {
    const box = await newBox();
    const execId = (await dsec('exec', '-d', box, 'sh', '-c', 'echo one; sleep 0.3; echo two >&2')).out.trim();
    expect(await dsec('logs', '-f', box, execId)).toMatchObject({ code: 0, out: 'one\n', err: 'two\n' });
    expect(await dsec('logs', '--stream', 'stderr', box, execId)).toMatchObject({ out: '', err: 'two\n' });
    expect((await dsec('logs', '--json', box, execId)).out).toContain('{"stream":"stdout","text":"one\\n"}');
  });
});

describe('looking and ending', () => {
  test('ls: table, ids, JSON lines, filters; nothing from a label drives the terminal', async () => {
    await newBox('-l', 'job=a', '-l', 'evil=\u001b[2Jx');
    const box = await newBox('-l', 'job=b');
    const table = (await dsec('ls')).out;
    expect(table.split('\n')[0]).toMatch(/^SANDBOX +STATUS +IMAGE +AGE +LABELS$/);
    expect(table).not.toContain('\u001b');
    expect((await dsec('ls', '-q', '--label', 'job=b')).out).toBe(`${box}\n`);
    const lines = (await dsec('ls', '--json', '--status', 'running')).out.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).status)).toEqual(['running', 'running']);
    expect((await dsec('ls', '-q', '--status', 'failed')).out).toBe('');
    expect((await dsec('get', box)).out).toMatch(/status +running/);
  });

  test('stop by id, by label; events show the commits', async () => {
    const [a, b] = [await newBox('-l', 'job=a'), await newBox()];
    expect((await dsec('stop', '--label', 'job=a')).out).toBe(`${a}\n`);
    expect((await dsec('pause', b)).out).toBe(`${b}\n`);
    expect((await dsec('resume', '--all')).out).toBe(`${b}\n`);
    expect((await dsec('stop', '--all', '--json')).out).toBe(`{"id":"${b}","done":"stopped"}\n`);
    const commits = (await dsec('events', '--json', b)).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(commits.map(({ version, state }) => `${version} ${state.status}`)).toEqual([
      '1 starting',
      '2 running',
      '3 paused',
      '4 running',
      '5 stopping',
      '6 stopped',
    ]);
    expect((await dsec('events', b)).out).toMatch(/VERSION +TIME +EVENTS +STATE/);
  });
});

describe('errors are one line and an exit code', () => {
  test.each<[readonly string[], number, RegExp]>([
    [['get', 'nonsense'], 2, /^dsec: INVALID_ARGUMENT: sandbox: .*\n$/],
    [['get', `sb-0-${'0'.repeat(20)}-node-1`], 5, /^dsec: SANDBOX_NOT_FOUND: .*\n$/],
    [['run', '-m', '0', 'debian'], 2, /^dsec: INVALID_ARGUMENT: .*memoryLimitMb.*\n$/],
    [['run', '-m', 'lots', 'debian'], 2, /^dsec: INVALID_ARGUMENT: --memory: .*\n$/],
    [['run', 'missing'], 5, /^dsec: IMAGE_NOT_FOUND: .*dsec image ls.*\n$/],
    [['run', '--rm', 'debian'], 2, /^dsec: INVALID_ARGUMENT: .*\n$/],
    [['stop'], 2, /^dsec: INVALID_ARGUMENT: name sandboxes.*\n$/],
    [['ls', '--status', 'asleep'], 2, /^dsec: INVALID_ARGUMENT: --status: .*running.*\n$/],
    [['ls', '--label', 'x'], 2, /^dsec: INVALID_ARGUMENT: --label: .*\n$/],
    [['job', 'create', 'two words'], 2, /^dsec: INVALID_ARGUMENT: createJob: key: .*without spaces\n$/],
    [['rollout', 'show', 'nonsense'], 2, /^dsec: INVALID_ARGUMENT: rollout: .*\n$/],
    [['ls', '--context', '/nowhere.json'], 2, /^dsec: INVALID_ARGUMENT: context file \/nowhere.json .*\n$/],
  ])('%j', async (words, code, err) => {
    expect(await dsec(...words)).toMatchObject({ code, out: '', err: expect.stringMatching(err) });
  });

  test('one failure among many does not stop the others', async () => {
    const box = await newBox();
    expect(await dsec('stop', `sb-0-${'0'.repeat(20)}-node-1`, box)).toMatchObject({ code: 5, out: `${box}\n` });
  });
});
