/** Exactly once, whatever dies: the process that holds Chronus, the connection, the sandbox. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { build } from 'esbuild';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ClientKey, type ExecId, execIdFor } from '#bus/ids.ts';
import { ExecFiles } from '#runtime/chronus/files.ts';
import { type Stand, startAether } from './aether-stand.ts';
import { ChronusUnderTest, SANDBOX_ID } from './chronus-under-test.ts';

let stand: Stand;
let open: ChronusUnderTest[];

beforeEach(async () => {
  stand = await startAether();
  open = [];
});
afterEach(async () => {
  for (const box of open) box.chronus.close();
  await stand.stop();
});

const newBox = (): ChronusUnderTest => {
  const box = new ChronusUnderTest(stand);
  open.push(box);
  return box;
};
/** What the runs of countedShell left. */
const counter = (): string => readFileSync(join(stand.dir, 'counter'), 'utf8');
/** Counts its runs in a file, says so, works until told to go on, and ends with 7. */
const countedShell = (): string =>
  `echo run >> ${stand.dir}/counter; echo before; while [ ! -e ${stand.dir}/go ]; do sleep 0.02; done; seq 1 5000; echo end >&2; exit 7`;
const letGo = (): void => writeFileSync(join(stand.dir, 'go'), '');

type Holder = { readonly process: ChildProcess; exec(key: string, shell: string): Promise<void> };
const nextLine = async (lines: Interface): Promise<string> => ((await once(lines, 'line')) as [string])[0];

const startHolder = async (): Promise<Holder> => {
  const outfile = join(stand.dir, 'holder.mjs');
  await build({ entryPoints: [join(import.meta.dirname, 'chronus-holder.ts')], outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  const child = spawn(process.execPath, [outfile, stand.execDir, stand.socketPath], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout);
  expect(await nextLine(lines)).toBe('ready');
  return {
    process: child,
    exec: async (key, shell) => {
      child.stdin.write(`${JSON.stringify({ key, shell })}\n`);
      expect(await nextLine(lines)).toBe(`accepted ${execIdFor(SANDBOX_ID, key as ClientKey)}`);
    },
  };
};

const OUTPUT = `before\n${Array.from({ length: 5000 }, (_, i) => `${i + 1}\n`).join('')}`;

test.each(['while it is away', 'after it is back'])('the Edge is killed in mid-command, which ends %s', async (when) => {
  const holder = await startHolder();
  await holder.exec('k1', countedShell());
  holder.process.kill('SIGKILL');
  await once(holder.process, 'exit');
  if (when === 'while it is away') letGo();

  const box = newBox();
  expect(await box.chronus.attach()).toBe(true);
  const again = box.exec(countedShell(), { key: 'k1' });
  if (when === 'after it is back') letGo();
  expect((await again).exec).toMatchObject({ state: 'ended', exitCode: 7, reason: 'exited', stderr: { totalBytes: 4 } });
  expect((await box.readAll((await again).exec.execId, 'stdout')).toString()).toBe(OUTPUT);
  expect(counter()).toBe('run\n');
});

test('a key names one command: the same body finds it, another is a conflict, also for a new Edge', async () => {
  letGo();
  const first = newBox();
  const calls = await Promise.all(Array.from({ length: 20 }, () => first.exec(countedShell(), { key: 'k1' })));
  expect(new Set(calls.map(({ exec }) => exec.execId)).size).toBe(1);
  await expect(first.exec('echo other', { key: 'k1' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
  first.chronus.close();

  const second = newBox();
  expect((await second.exec(countedShell(), { key: 'k1' })).exec).toMatchObject({ exitCode: 7, startedAt: calls[0]?.exec.startedAt });
  await expect(second.exec('echo other', { key: 'k1' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
  expect(counter()).toBe('run\n');
});

test('journalled but never started: the repeated call starts it, once', async () => {
  letGo();
  const shell = countedShell();
  const first = newBox();
  const { exec } = await first.exec(shell, { key: 'k1' });
  first.chronus.close();
  // as if the Edge had died between the journal's line and the start: the line stays, Aether knows nothing
  new ExecFiles(stand.execDir).forget(exec.execId);
  rmSync(join(stand.dir, 'counter'));

  const second = newBox();
  await second.chronus.attach();
  await expect(second.wait(exec.execId)).rejects.toMatchObject({ code: 'EXEC_NOT_FOUND' });
  await expect(second.exec('echo other', { key: 'k1' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
  const ends = await Promise.all([second.exec(shell, { key: 'k1' }), second.exec(shell, { key: 'k1' })]);
  for (const end of ends) expect(end.exec).toMatchObject({ exitCode: 7 });
  expect(counter()).toBe('run\n');
});

test('started, but the answer was lost: Aether knows it', async () => {
  const shell = countedShell();
  const first = newBox();
  const { exec } = await first.exec(shell, { key: 'k1', waitMs: 0 });
  first.chronus.close();
  // the new Edge believes that it has to start it
  const files = { journal: join(stand.execDir, 'journal'), out: join(stand.execDir, `${exec.execId}.out`) };
  expect(readFileSync(files.journal, 'utf8').split('\n')).toHaveLength(2);
  const second = newBox();
  await second.chronus.attach();
  letGo();
  expect((await second.exec(shell, { key: 'k1' })).exec).toMatchObject({ exitCode: 7 });
  expect(counter()).toBe('run\n');
});

test('a torn last line of the journal is no fact, and the next line stands apart', async () => {
  const first = newBox();
  await first.exec('echo one', { key: 'k1' });
  first.chronus.close();
  writeFileSync(join(stand.execDir, 'journal'), '{"v":1,"fact":"acce', { flag: 'a' });

  const second = newBox();
  expect((await second.exec('echo two', { key: 'k2' })).stdout.toString()).toBe('two\n');
  second.chronus.close();
  const third = newBox();
  expect((await third.call('list', {})).data.execs.map(({ execId }) => execId)).toEqual(['k2', 'k1'].map((key) => execIdFor(SANDBOX_ID, key as ClientKey)));
  expect((await third.exec('echo two', { key: 'k2' })).stdout.toString()).toBe('two\n');
});

test('standard input goes on where the old Edge stopped', async () => {
  const first = newBox();
  const { exec } = await first.exec(['sha256sum'], { key: 'k1', stdin: 'open', waitMs: 0 });
  await first.call('stdin', { execId: exec.execId, offset: 0 }, Buffer.from('hello '));
  first.chronus.close();
  const second = newBox();
  await second.call('stdin', { execId: exec.execId, offset: 0 }, Buffer.from('hello world'));
  await second.call('stdin', { execId: exec.execId, offset: 11, close: true });
  await second.wait(exec.execId);
  expect((await second.readAll(exec.execId, 'stdout')).toString().slice(0, 64)).toBe('b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9');
});

test('the sandbox dies: what has a record keeps its result, what has none is unknown, never 0', async () => {
  const box = newBox();
  await box.chronus.attach();
  const done = await box.exec('echo done; exit 3', { key: 'done' });
  const running = await box.exec('echo begun; sleep 64', { key: 'running', waitMs: 0 });
  expect(box.chronus.runningCount).toBe(1);
  expect((await box.call('read', { execId: running.exec.execId, stream: 'stdout', offset: 0 })).body.toString()).toBe('begun\n');
  const waiting = box.wait(running.exec.execId);
  await stand.kill();
  expect(await waiting).toMatchObject({ state: 'ended', exitCode: null, signal: null, reason: 'sandbox_died', fault: 'infra', retry: 'later' });
  expect(box.lost).toBe(1);
  expect(box.chronus.runningCount).toBe(0);
  await expect(box.exec('echo new')).rejects.toMatchObject({ code: 'SANDBOX_ENDED', outcome: 'not_applied' });

  const reader = newBox();
  expect(await reader.chronus.attach()).toBe(false);
  expect(await reader.wait(done.exec.execId as ExecId)).toMatchObject({ exitCode: 3 });
  expect((await reader.readAll(running.exec.execId, 'stdout')).toString()).toBe('begun\n');
  expect((await reader.call('list', {})).data.execs).toMatchObject([{ reason: 'sandbox_died', exitCode: null }, { exitCode: 3 }]);
});

test('many commands at once, and none is left in memory', async () => {
  const box = newBox();
  const ends = await Promise.all(Array.from({ length: 300 }, (_, i) => box.exec(`echo ${i}; exit ${i % 200}`)));
  expect(ends.map(({ exec, stdout }) => `${exec.exitCode} ${stdout}`)).toEqual(Array.from({ length: 300 }, (_, i) => `${i % 200} ${i}\n`));
  expect(box.chronus.runningCount).toBe(0);
  expect(stand.commandGroups()).toEqual([]);
});
