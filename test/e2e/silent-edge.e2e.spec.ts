/** An Edge that does not answer: whoever waits for it learns so soon, can leave at once, and what he asked for is done once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import { connect, type DsecClient, type Sandbox, type WaitNotice } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;
let stopped: number | undefined;
const heard: WaitNotice[] = [];

beforeAll(async () => {
  host = await startTestPlatform();
  dsec = await connect({ contextFile: host.platform.contextFile, onWait: (notice) => heard.push(notice) });
  box = await dsec.runContainer({ image: 'small' });
});
afterEach(() => goOn());
afterAll(async () => {
  await dsec?.close();
  await host?.close();
});

const stopEdge = (): void => {
  stopped = host.platform.pids().edge as number;
  process.kill(stopped, 'SIGSTOP');
};
const goOn = (): void => {
  if (stopped !== undefined) process.kill(stopped, 'SIGCONT');
  stopped = undefined;
};

const cli = (...args: string[]): { readonly child: ChildProcess; readonly said: { err: string; out: string }; readonly code: Promise<number | null> } => {
  const child = spawn(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), ...args], {
    env: { ...process.env, DSEC_CONTEXT: host.platform.contextFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { err: '', out: '' };
  child.stdout.on('data', (chunk) => (said.out += String(chunk)));
  child.stderr.on('data', (chunk) => (said.err += String(chunk)));
  return { child, said, code: once(child, 'close').then(([code]) => code as number | null) };
};

test('SDK: notices name the sandbox and the reason, the command runs once, and the end of the silence is told', async () => {
  stopEdge();
  const asked = box.runShell('echo once >> /tmp/runs; wc -l < /tmp/runs');
  await expect.poll(() => heard.map(({ state }) => state), { timeout: 20_000 }).toContain('waiting');
  expect(heard[0]).toMatchObject({ on: box.id, error: { retry: 'same' } });
  expect(heard[0]?.error.message).toContain("sandbox's Edge");
  expect(heard[0]?.givesUpInMs).toBeGreaterThan(0);
  goOn();
  expect((await asked).stdout.trim()).toBe('1');
  expect(heard.at(-1)?.state).toBe('answered');
});

test('an id that was never given is told apart from an Edge that is away', async () => {
  await expect(dsec.sandbox('sb-0-00000000000000000000-elsewhere').exec(['true'])).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
});

test('CLI: a line on stderr says who is silent; the output and the exit code are the command’s', async () => {
  stopEdge();
  const { said, code } = cli('exec', box.id, '--', 'sh', '-c', 'echo hello; exit 7');
  await expect.poll(() => said.err, { timeout: 20_000 }).toMatch(new RegExp(`^dsec: waiting for ${box.id} for \\d+ s: [A-Z_]+: .*Edge`, 'm'));
  goOn();
  expect(await code).toBe(7);
  expect(said.out).toBe('hello\n');
  expect(said.err).toMatch(new RegExp(`^dsec: ${box.id} answers again`, 'm'));
});

test('CLI: Ctrl-C while the start is unanswered leaves with 130 and says what is not known; the command is dead when the Edge is back', async () => {
  stopEdge();
  const { child, said, code } = cli('exec', box.id, '--', 'sleep', '98711');
  await expect.poll(() => said.err, { timeout: 20_000 }).toContain('waiting for');
  child.kill('SIGINT');
  expect(await code).toBe(130);
  expect(said.err).toContain('CANCELLED');
  goOn();
  await expect.poll(async () => (await box.exec(['ps'])).stdout, { timeout: 30_000 }).not.toContain('98711');
});

test('CLI: SIGTERM, which does what a second Ctrl-C does, leaves a command whose Edge is silent without waiting for it', async () => {
  const { child, said, code } = cli('exec', box.id, '--', 'sh', '-c', 'echo up; exec sleep 98712');
  await expect.poll(() => said.out, { timeout: 20_000 }).toContain('up');
  stopEdge();
  child.kill('SIGTERM');
  expect(await code).toBe(130);
  expect(said.err).toContain('nobody says whether it was killed');
});
