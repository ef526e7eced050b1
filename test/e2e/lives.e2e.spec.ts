/** Lives with real time, as short as they may be: what ends when, what goes on, and what calls under way are told. */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { CONTAINER_LIMITS } from '#runtime/backends/container/limits.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { DsecClient, DsecError, Sandbox, SandboxChange, SandboxState } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

const PROGRAM = join(projectRoot(), 'build/dsec.mjs');

let host: TestPlatform;
let dsec: DsecClient;

givenPlatform({}, (given) => {
  ({ host, dsec } = given);
});

const box = (options: Partial<Parameters<DsecClient['runContainer']>[0]> = {}): Promise<Sandbox> =>
  dsec.runContainer({ image: 'small', memoryLimitMb: 32, ...options });
/** The state in which it ended, from its history. */
const end = async (sandbox: Sandbox): Promise<SandboxState> => {
  for await (const commit of sandbox.events({ follow: true }))
    if (['stopped', 'failed'].includes(String(commit.state['status']))) return commit.state as unknown as SandboxState;
  throw new Error('its history is over, and it is not');
};
/** Where an end by its Edge is told from the hard end, which comes that long after a life, whether there is an Edge or not. */
const HARD_END_MS = CONTAINER_LIMITS.hardLifeGraceMs;

describe.concurrent('the end of a life', () => {
  test('total: at its time, once, whatever it does; a command under way ends as expired', async () => {
    const sandbox = await box({ ttlTotal: 5 });
    const result = await sandbox.runShell('echo partial; sleep 60');
    expect(result).toMatchObject({ reason: 'expired', fault: 'policy', retry: 'never', exitCode: null, stdout: 'partial\n', ok: false });
    const state = await end(sandbox);
    expect([state.status, state.stopReason, state.failure]).toEqual(['stopped', 'total_life', null]);
    expect(Number(state.endedAt) - state.createdAt).toBeGreaterThanOrEqual(5_000);
    expect(Number(state.endedAt) - state.createdAt).toBeLessThan(5_000 + HARD_END_MS);
    const events = [];
    for await (const commit of sandbox.events()) events.push(...commit.events.map((event) => event.type));
    expect(events.filter((type) => type === 'SandboxStopping' || type === 'SandboxStopped')).toEqual(['SandboxStopping', 'SandboxStopped']);
  });

  test('afterwards calls are told EXPIRED, and known commands are still answered', async () => {
    const sandbox = await box({ ttlTotal: 5 });
    const done = await sandbox.exec(['echo', 'kept'], { key: 'before' });
    await end(sandbox);
    const error = await refusal(sandbox.exec(['true']));
    expect([error.code, error.fault, error.retry, error.outcome]).toEqual(['EXPIRED', 'policy', 'never', 'not_applied']);
    expect((await sandbox.exec(['echo', 'kept'], { key: 'before' })).stdout).toBe('kept\n');
    expect((await sandbox.attach(done.execId).wait()).exitCode).toBe(0);
  });

  test('running: counted from the start', async () => {
    const sandbox = await box({ ttlRunning: 2 });
    const result = await sandbox.exec(['sleep', '60']);
    expect(result.reason).toBe('expired');
    const state = await end(sandbox);
    expect(state.stopReason).toBe('running_life');
    expect(Number(state.endedAt) - Number(state.startedAt)).toBeGreaterThanOrEqual(2_000);
  });

  test('idle: a command in the foreground is activity, however long and silent it is', async () => {
    const sandbox = await box({ ttlRunningStop: 3 });
    const before = Date.now();
    expect((await sandbox.exec(['sleep', '5'])).ok).toBe(true);
    const state = await end(sandbox);
    expect(state.stopReason).toBe('idle');
    expect(Number(state.endedAt) - before).toBeGreaterThanOrEqual(8_000);
  });

  test('idle: what runs unattended and silently is none', async () => {
    const sandbox = await box({ ttlRunningStop: 3 });
    const command = await sandbox.start(['sleep', '60']);
    expect((await end(sandbox)).stopReason).toBe('idle');
    expect((await command.wait()).reason).toBe('expired'); // the end did not wait for it
  });

  test('looking at a sandbox neither shortens nor lengthens anything', async () => {
    const sandbox = await box({ ttlRunningStop: 2 });
    let state: SandboxState;
    do {
      state = await sandbox.refresh();
      await delay(50);
    } while (state.status === 'running');
    expect(Number(state.endedAt) - Number(state.startedAt)).toBeGreaterThanOrEqual(2_000); // and one that looks put off would not end
  });
});

describe.concurrent('new lives', () => {
  test('are in the answer in absolute time, and hold', async () => {
    const sandbox = await box({ ttlTotal: 3 });
    const before = Date.now();
    const decision = await sandbox.extend({ ttlTotal: 10, ttlRunning: 600, ttlRunningStop: null });
    expect(decision).toMatchObject({ decision: 'accepted', lives: { version: 1, runningMs: 600_000, idleMs: null, idleDeadlineAt: null } });
    expect(decision.lives?.totalDeadlineAt).toBeGreaterThanOrEqual(before + 10_000);
    expect(decision.lives?.totalDeadlineAt).toBeLessThanOrEqual(Date.now() + 10_000);
    await delay(4_000);
    expect((await sandbox.exec(['echo', 'alive'])).stdout).toBe('alive\n');
    const state = await end(sandbox);
    expect(Number(state.endedAt)).toBeGreaterThanOrEqual(Number(decision.lives?.totalDeadlineAt));
  });

  test('race the timer: each is either granted and kept, or refused because the end came first', async () => {
    const boxes = await Promise.all(Array.from({ length: 24 }, () => box({ ttlTotal: 2, memoryLimitMb: 8 })));
    const outcomes = await Promise.all(
      boxes.map(async (sandbox, n) => {
        await delay(Math.max(0, Number(sandbox.state?.totalDeadlineAt) - Date.now() - 120 + n * 10));
        return sandbox.extend({ ttlTotal: 60 }).then(
          (decision) => ({ sandbox, decision }),
          (error: DsecError) => ({ sandbox, error }),
        );
      }),
    );
    const granted = outcomes.flatMap((o) => ('decision' in o ? [o.sandbox] : []));
    const refused = outcomes.flatMap((o) => ('error' in o ? [o] : []));
    for (const { error } of refused) expect(['INVALID_STATE', 'SANDBOX_ENDED']).toContain(error.code);
    await delay(500);
    for (const sandbox of granted) expect((await sandbox.exec(['echo', 'kept'])).stdout).toBe('kept\n');
    for (const { sandbox } of refused) expect((await end(sandbox)).stopReason).toBe('total_life');
    expect(granted.length + refused.length).toBe(boxes.length);
    await Promise.all(granted.map((sandbox) => sandbox.stop()));
  });

  test('beyond what there is are refused by name, and change nothing', async () => {
    const sandbox = await box({ ttlTotal: 600 });
    const deadline = (await sandbox.refresh()).totalDeadlineAt;
    expect((await refusal(sandbox.extend({ ttlTotal: 8 * 24 * 3_600 }))).code).toBe('LIMIT_OUT_OF_RANGE');
    expect((await refusal(sandbox.extend({ ttlRunning: 0 }))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(sandbox.extend({}))).code).toBe('INVALID_ARGUMENT');
    expect((await sandbox.refresh()).totalDeadlineAt).toBe(deadline);
    await sandbox.stop();
    expect((await refusal(sandbox.extend({ ttlTotal: 60 }))).code).toBe('SANDBOX_ENDED');
  });

  test('shorter and longer again: the newest alone counts', async () => {
    const sandbox = await box({ ttlTotal: 600 });
    const shorter = await sandbox.extend({ ttlTotal: 2 });
    expect(shorter.lives?.totalDeadlineAt).toBeLessThanOrEqual(Date.now() + 2_000);
    await sandbox.extend({ ttlTotal: 600 });
    await delay(2_500);
    expect((await sandbox.exec(['echo', 'alive'])).stdout).toBe('alive\n');
    await sandbox.stop();
  });
});

test('a list of sandboxes with very much in their labels comes in pages that fit, and none is missing', async () => {
  const labels = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`${'k'.repeat(60)}${n}`, 'v'.repeat(255)]));
  const group = await dsec.runContainers({ image: 'small', memoryLimitMb: 8, labels: { ...labels, fat: 'yes' } }, { count: 60 });
  const listed: string[] = [];
  for await (const { id } of dsec.list({ labels: { fat: 'yes' }, status: 'running', pageSize: 500 })) listed.push(id);
  expect(listed).toEqual(group.sandboxes.map(({ id }) => id).sort());
  await group.stopAll();
});

describe('watch', () => {
  const collect = (options: Parameters<DsecClient['watch']>[0] = {}) => {
    const stop = new AbortController();
    const seen: SandboxChange[] = [];
    const done = (async () => {
      for await (const change of dsec.watch({ ...options, signal: stop.signal })) seen.push(change);
    })().catch((error: DsecError) => expect(error.code).toBe('CANCELLED'));
    return {
      seen,
      stop: () => {
        stop.abort();
        return done;
      },
    };
  };
  const versionsOf = (seen: readonly SandboxChange[], id: string) => seen.filter((change) => change.id === id).map((change) => change.version);

  test('begins with what is there, gives each change once and in order, over restarts of the bus and of the apiserver', async () => {
    const labels = { watched: 'yes' };
    const there = await box({ labels });
    const other = await box({ labels: { watched: 'no' } });
    const watch = collect({ labels });
    await expect.poll(() => watch.seen.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const made = await box({ labels });
    await made.extend({ ttlTotal: 100 });
    process.kill(host.platform.pids().bus, 'SIGKILL');
    await made.extend({ ttlTotal: 200 });
    process.kill(host.platform.pids().control as number, 'SIGKILL');
    await Promise.all([made.stop(), other.stop()]);
    await there.stop();
    await expect.poll(() => watch.seen.filter(({ state }) => state.status === 'stopped').length, { timeout: 30_000 }).toBe(2);
    await watch.stop();
    expect(watch.seen[0]).toMatchObject({ kind: 'found', id: there.id, version: 2, state: { status: 'running' }, events: [] });
    expect(versionsOf(watch.seen, there.id)).toEqual([2, 3, 4]);
    expect(versionsOf(watch.seen, made.id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(versionsOf(watch.seen, other.id)).toEqual([]);
    expect(watch.seen.filter(({ id }) => id === made.id).map(({ events }) => events.map(({ type }) => type).at(-1))).toEqual([
      'SandboxStarting',
      'SandboxStarted',
      'SandboxLivesExtended',
      'SandboxLivesExtended',
      'SandboxStopping',
      'SandboxStopped',
    ]);
  });

  test('on the command line: watch, get and extend', async () => {
    const sandbox = await box({ labels: { cli: 'yes' }, ttlTotal: 600, diskLimitMb: 32 });
    const watching = spawn(process.execPath, [PROGRAM, 'watch', '--json', '--label', 'cli=yes', '--context', host.platform.contextFile], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines: { kind: string; version: number; state: { status: string } }[] = [];
    createInterface({ input: watching.stdout }).on('line', (line) => lines.push(JSON.parse(line)));
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(1);
    const cli = async (...args: string[]) => (await promisify(execFile)(process.execPath, [PROGRAM, ...args, '--context', host.platform.contextFile])).stdout;
    expect(await cli('extend', sandbox.id, '--ttl', '900', '--idle', 'none')).toMatch(
      /total life ends.*\n.*running life +none\n.*paused when idle for +never\n.*idle life +none/,
    );
    expect(await cli('get', sandbox.id)).toMatch(/memory +32 MiB, no swap\n.*cpus +1, weight 100\n.*pids +512\n.*disk +32 MiB\n/);
    await sandbox.stop();
    await expect
      .poll(() => lines.map(({ kind, version, state }) => `${kind} ${version} ${state.status}`), { timeout: 20_000 })
      .toEqual(['found 2 running', 'changed 3 running', 'changed 4 stopping', 'changed 5 stopped']);
    watching.kill();
  });
});
