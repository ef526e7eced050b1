/**
 * Pause and resume, end to end: what rests gives its memory back, what comes back is as it was, and whoever needs the inside of a paused
 * sandbox resumes it by asking, once.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import type { DsecClient, DsecError, ManyResult, Sandbox, SandboxState } from '#sdk/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { firstLine } from '#test/helpers/commands.ts';
import { buildHolderLayer } from '#test/helpers/memory-holder.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

const PROGRAM = join(projectRoot(), 'build/dsec.mjs');

let host: TestPlatform;
let dsec: DsecClient;
const swapsBefore = readFileSync('/proc/swaps', 'utf8').split('\n').length;

/** Runs last: hooks that come after run from the last to the first. */
afterAll(() => {
  expect(readFileSync('/proc/swaps', 'utf8').split('\n').length).toBe(swapsBefore);
});
givenPlatform({ overrides: { swapMiB: 1_024 } }, async (given) => {
  ({ host, dsec } = given);
  await buildHolderLayer(host);
});

const box = (options: Partial<Parameters<DsecClient['runContainer']>[0]> = {}): Promise<Sandbox> =>
  dsec.runContainer({ image: 'small', toolkits: ['holder'], memoryLimitMb: 256, ...options });
const eventsOf = async (sandbox: Sandbox): Promise<string[]> => {
  const types: string[] = [];
  for await (const commit of sandbox.events()) types.push(...commit.events.map((event) => event.type));
  return types;
};
const becomes = async (sandbox: Sandbox, status: string): Promise<SandboxState> => {
  for await (const { state } of sandbox.events({ follow: true })) if (state['status'] === status) return state as unknown as SandboxState;
  throw new Error(`its history ended, and it was never ${status}`);
};
describe.concurrent('what a pause keeps', () => {
  test('memory is given back, said in the state, and comes back as it was', async () => {
    const sandbox = await box();
    const holder = await sandbox.start(['/opt/memory-holder', '64'], { stdin: 'open' });
    const filled = (await firstLine(holder)).trim().split(' ')[1];
    await sandbox.pause();
    const paused = await sandbox.refresh();
    expect(paused).toMatchObject({ status: 'paused', pauseReason: 'requested' });
    expect(paused.memoryGivenBackMiB).toBeGreaterThan(32);
    await holder.stdin.write('again\n');
    await holder.stdin.close();
    expect((await holder.result()).stdout).toBe(`filled ${filled}\nsum ${filled}\n`);
    expect(await sandbox.refresh()).toMatchObject({ status: 'running', memoryGivenBackMiB: null, pauseReason: null });
    await sandbox.delete();
  });

  test('a command goes on where it was: its time-out stands meanwhile, its timer fires once, its readers get every byte', async () => {
    const sandbox = await box();
    const command = await sandbox.start(['sh', '-c', 'echo one; sleep 1; echo two; sleep 1; echo three'], { timeoutMs: 7_000 });
    await firstLine(command);
    const reading = command.result();
    await sandbox.pause();
    await delay(8_000);
    expect((await command.view()).state).toBe('running');
    expect((await sandbox.refresh()).status).toBe('paused');
    await sandbox.resume();
    expect(await reading).toMatchObject({ stdout: 'one\ntwo\nthree\n', exitCode: 0, reason: 'exited' });
    await sandbox.delete();
  });

  test('a time-out that was not over is over after as long again', async () => {
    const sandbox = await box();
    const command = await sandbox.start(['sh', '-c', 'echo up; sleep 60'], { timeoutMs: 6_000 });
    await firstLine(command);
    await sandbox.pause();
    await delay(7_000);
    const at = Date.now();
    await sandbox.resume();
    expect(await command.wait()).toMatchObject({ reason: 'timeout' });
    expect(Date.now() - at).toBeGreaterThan(300);
    await sandbox.delete();
  });

  test('running life does not tick, total life does', async () => {
    const sandbox = await box({ ttlRunning: 3, ttlTotal: 7 });
    await sandbox.pause();
    await delay(3_500);
    expect(await sandbox.refresh()).toMatchObject({ status: 'paused', runningDeadlineAt: null });
    expect(await becomes(sandbox, 'stopped')).toMatchObject({ stopReason: 'total_life' });
  });
});

describe.concurrent('who needs the inside resumes it', () => {
  test.each([
    ['a command', (sandbox: Sandbox) => sandbox.exec(['true'])],
    ['a file that is read', (sandbox: Sandbox) => sandbox.files.read('/etc/passwd')],
    ['a file that is written', (sandbox: Sandbox) => sandbox.files.write('/w/new', 'x')],
    ['a stat', (sandbox: Sandbox) => sandbox.files.stat('/etc')],
  ])('%s', async (_, ask) => {
    const sandbox = await box();
    await sandbox.pause();
    await ask(sandbox);
    expect((await sandbox.refresh()).status).toBe('running');
    expect((await eventsOf(sandbox)).filter((type) => type === 'SandboxResumed')).toHaveLength(1);
    await sandbox.delete();
  });

  test('once, however many ask at the same time, also while it is only being paused', async () => {
    const sandbox = await box();
    const pausing = sandbox.pause().catch(() => undefined);
    await becomes(sandbox, 'pausing');
    const results = await Promise.all(Array.from({ length: 40 }, (_, i) => sandbox.exec(['echo', String(i)])));
    expect(results.map((result) => result.stdout)).toEqual(Array.from({ length: 40 }, (_, i) => `${i}\n`));
    await pausing;
    expect((await eventsOf(sandbox)).filter((type) => type === 'SandboxResuming')).toHaveLength(1);
    await sandbox.delete();
  });

  test('a signal', async () => {
    const sandbox = await box();
    const command = await sandbox.start(['sleep', '1000']);
    await sandbox.pause();
    expect(await command.signal('TERM')).toBe(true);
    expect(await command.wait()).toMatchObject({ signal: 'TERM' });
    await sandbox.delete();
  });

  test('looking at what is there does not', async () => {
    const sandbox = await box();
    const command = await sandbox.start(['sh', '-c', 'echo up; sleep 1000']);
    const done = await sandbox.exec(['echo', 'done'], { key: 'known' });
    await firstLine(command);
    await sandbox.pause();
    expect((await command.view()).state).toBe('running');
    expect(await firstLine(command)).toBe('up');
    expect((await sandbox.commands()).length).toBeGreaterThan(1);
    expect((await sandbox.exec(['echo', 'done'], { key: 'known' })).stdout).toBe(done.stdout);
    expect((await sandbox.refresh()).status).toBe('paused');
    await sandbox.delete();
  });
});

describe.concurrent('want of activity', () => {
  test('pauses it, a command resumes it, and a longer want ends it', async () => {
    const sandbox = await box({ ttlRunningPause: 2, ttlRunningStop: 6 });
    expect(await becomes(sandbox, 'paused')).toMatchObject({ pauseReason: 'idle' });
    expect((await sandbox.exec(['echo', 'here'])).stdout).toBe('here\n');
    expect((await sandbox.refresh()).status).toBe('running');
    expect(await becomes(sandbox, 'stopped')).toMatchObject({ stopReason: 'idle' });
    const types = await eventsOf(sandbox);
    expect(types.filter((type) => type === 'SandboxPaused')).toHaveLength(2);
  });

  test('is not there while somebody waits for a command', async () => {
    const sandbox = await box({ ttlRunningPause: 1 });
    expect((await sandbox.exec(['sh', '-c', 'sleep 3; echo through'])).stdout).toBe('through\n');
    expect(await eventsOf(sandbox)).not.toContain('SandboxPausing');
    expect(await sandbox.extend({ ttlRunningPause: null })).toMatchObject({ lives: { idlePauseMs: null, idlePauseDeadlineAt: null } });
    await sandbox.delete();
  });
});

describe.concurrent('what does not go is said, and changes nothing', () => {
  test('pause and resume of one that has ended', async () => {
    const sandbox = await box();
    await sandbox.stop();
    expect(await refusal(sandbox.resume())).toMatchObject({ code: 'SANDBOX_ENDED', outcome: 'not_applied' });
    expect(await refusal(sandbox.pause())).toMatchObject({ code: 'SANDBOX_ENDED', outcome: 'not_applied' });
  });

  test('a second pause and a second resume are nothing new', async () => {
    const sandbox = await box();
    await sandbox.resume();
    await Promise.all([sandbox.pause(), sandbox.pause()]);
    await sandbox.pause();
    await sandbox.resume();
    expect((await eventsOf(sandbox)).filter((type) => type === 'SandboxPaused')).toHaveLength(1);
    await sandbox.delete();
  });

  test('a stop while it is being paused, and of one that is paused, ends it', async () => {
    const [pausing, paused] = await Promise.all([box(), box()]);
    await firstLine(await pausing.start(['/opt/memory-holder', '64'], { stdin: 'open' }));
    const under = pausing.pause().catch((thrown: DsecError) => thrown.code);
    await becomes(pausing, 'pausing');
    await pausing.stop();
    expect([undefined, 'SANDBOX_ENDED']).toContain(await under);
    await paused.pause();
    await paused.stop();
    expect(await Promise.all([pausing.refresh(), paused.refresh()])).toMatchObject([{ status: 'stopped' }, { status: 'stopped' }]);
  });
});

describe('a whole set', () => {
  const COUNT = 24;
  const drained = async (results: AsyncIterable<ManyResult>): Promise<ManyResult[]> => {
    const all: ManyResult[] = [];
    for await (const result of results) all.push(result);
    return all;
  };

  test('rests and goes on by its label, each told of, and one that cannot does not hold up the others', async () => {
    const group = (await dsec.runContainers({ image: 'small', memoryLimitMb: 32, labels: { set: 'one' } }, { count: COUNT })).orThrow();
    const ids = group.sandboxes.map(({ id }) => id).sort();
    const other = await box({ labels: { set: 'other' } });
    const paused = await drained(dsec.pauseMany({ labels: { set: 'one' } }));
    expect(paused.map(({ id }) => id).sort()).toEqual(ids);
    expect(paused.every(({ state, error }) => state?.status === 'paused' && !error)).toBe(true);
    expect((await other.refresh()).status).toBe('running');
    expect(await drained(dsec.pauseMany({ labels: { set: 'one' } }))).toEqual([]);
    await group.sandboxes[0]?.stop();
    const resumed = await drained(dsec.resumeMany({ ids }));
    expect(resumed.filter(({ error }) => error).map(({ id, error }) => [id, error?.code])).toEqual([[group.sandboxes[0]?.id, 'SANDBOX_ENDED']]);
    expect(resumed.filter(({ state }) => state?.status === 'running')).toHaveLength(COUNT - 1);
    expect(await refusal(drained(dsec.pauseMany({ ids: ['nonsense'] })))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    await Promise.all([group.deleteAll(), other.delete()]);
  });

  test('by the command line: ids, counts, and an exit code of what failed', async () => {
    const group = (await dsec.runContainers({ image: 'small', memoryLimitMb: 32, labels: { set: 'two' } }, { count: 3 })).orThrow();
    const ids = group.sandboxes.map(({ id }) => id).sort();
    const program = (...args: string[]) =>
      promisify(execFile)(process.execPath, [PROGRAM, ...args, '--context', host.platform.contextFile]).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        (thrown: { code: number; stdout: string; stderr: string }) => thrown,
      );
    const paused = await program('pause', '--label', 'set=two');
    expect([paused.code, paused.stdout.trim().split('\n').sort()]).toEqual([0, ids]);
    expect(paused.stderr).toContain('3 paused, 0 failed');
    expect((await program('ls', '--label', 'set=two')).stdout.match(/paused -\d+ MiB/g)).toHaveLength(3);
    await group.sandboxes[1]?.stop();
    const resumed = await program('resume', '--json', ...ids);
    expect(resumed.code).toBe(6);
    const lines = resumed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; done?: string; error?: { code: string } });
    expect(lines.filter(({ done }) => done === 'resumed')).toHaveLength(2);
    expect(lines.find(({ error }) => error)).toMatchObject({ id: group.sandboxes[1]?.id, error: { code: 'SANDBOX_ENDED' } });
    await group.deleteAll();
  });
});
