/**
 * Memory of a frozen sandbox goes to swap and comes back unchanged, in every layout of control groups that this machine can show; the
 * node's own swap is made once, found again by the next launcher, and removed.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryHolder } from '#test/helpers/memory-holder.ts';
import { LauncherStand, type TestSandbox } from './launcher-stand.ts';

const MIB = 1024 * 1024;
const SIZE_MIB = 48;

const swaps = (): string[] =>
  readFileSync('/proc/swaps', 'utf8')
    .split('\n')
    .slice(1)
    .filter((line) => line.length > 0);
const zrams = (): string[] => readdirSync('/sys/block').filter((name) => name.startsWith('zram'));
const before = { swaps: swaps(), zrams: zrams() };

/** Starts the holder, which reads a FIFO and answers into a file; `ask` gives the checksum of what it holds now. */
const hold = async (sandbox: TestSandbox, mib: number, children = 0) => {
  await sandbox.run('mkfifo /ask 2>/dev/null || true');
  await sandbox.start(`/bin/memory-holder ${mib} ${children} </ask >/sums`);
  await sandbox.start('exec 3>/ask; while [ ! -e /done ]; do sleep 1; done');
  const lines = async (): Promise<string[]> => (await sandbox.run('cat /sums')).stdout.split('\n').filter((line) => line.length > 0);
  const until = async (count: number): Promise<string> => {
    for (;;) {
      const said = await lines();
      if (said.length >= count) return (said[count - 1] ?? '').split(' ')[1] ?? '';
    }
  };
  let asked = 1;
  return {
    filled: await until(1),
    ask: async (): Promise<string> => {
      await sandbox.run('echo ask >/ask');
      asked += 1;
      return until(asked);
    },
  };
};

describe.each([
  ['as this machine is', []],
  ['v1 control groups alone', ['--without-v2']],
] as const)('%s', (_, flags) => {
  let stand: LauncherStand;

  beforeAll(async () => {
    stand = new LauncherStand(flags);
    await stand.connect();
  });

  afterAll(async () => {
    await stand.client.swapOff();
    expect(await stand.close()).toEqual([]);
    expect({ swaps: swaps(), zrams: zrams() }).toEqual(before);
  });

  const launch = async (n: number): Promise<TestSandbox> => {
    const tool = stand.image(`tool-${n}`, (root) => {
      execFileSync('mkdir', [join(root, 'bin')]);
      cpSync(memoryHolder(), join(root, 'bin/memory-holder'));
    });
    await stand.client.mountImage(tool.digest, tool.path);
    return stand.sandbox(n, { layers: [stand.base.digest, tool.digest], memoryMiB: 256 });
  };

  test('without swap only what files fill is given back, and nothing is lost', async () => {
    const sandbox = await launch(1);
    const held = await hold(sandbox, SIZE_MIB);
    await stand.client.freeze(sandbox.id);
    const { beforeBytes, afterBytes, swappedBytes } = await stand.client.reclaim(sandbox.id);
    if (before.swaps.length === 0) {
      expect(swappedBytes).toBe(0);
      expect(afterBytes).toBeGreaterThan(SIZE_MIB * MIB * 0.95);
    }
    expect(afterBytes).toBeLessThanOrEqual(beforeBytes);
    await stand.client.thaw(sandbox.id);
    expect(await held.ask()).toBe(held.filled);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('the swap is made once, and found again by a launcher that follows one that was killed', async () => {
    const made = await stand.client.swapOn(1_024);
    expect(made.bytes).toBe(1_024 * MIB);
    expect(await stand.client.swapOn(1_024)).toEqual(made);
    process.kill(stand.client.info.pid, 'SIGKILL');
    await stand.connect(2);
    expect(await stand.client.swapOn(1_024)).toEqual(made);
    expect(swaps().filter((line) => line.includes(made.device))).toHaveLength(1);
    expect(zrams().length).toBe(before.zrams.length + 1);
  });

  test('what a sandbox holds leaves memory, costs less, and is the same when it comes back', async () => {
    await stand.client.swapOn(1_024);
    const sandbox = await launch(2);
    const held = await hold(sandbox, SIZE_MIB);
    await stand.client.freeze(sandbox.id);
    const first = await stand.client.reclaim(sandbox.id);
    expect(first.beforeBytes - first.afterBytes).toBeGreaterThan(SIZE_MIB * MIB * 0.95);
    expect(first.swappedBytes).toBeGreaterThan(SIZE_MIB * MIB * 0.95);
    expect(first.costBytes).toBeLessThan(first.swappedBytes);
    expect((await stand.client.reclaim(sandbox.id)).afterBytes).toBeLessThanOrEqual(first.afterBytes + MIB);
    expect(await stand.client.prefetch(sandbox.id, 16)).toBeLessThanOrEqual(17 * MIB);
    await stand.client.thaw(sandbox.id);
    expect(await stand.client.prefetch(sandbox.id, 1_024)).toBeGreaterThan(0);
    expect(await held.ask()).toBe(held.filled);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('memory that forked processes share goes too', async () => {
    await stand.client.swapOn(1_024);
    const sandbox = await launch(3);
    const held = await hold(sandbox, SIZE_MIB, 2);
    await stand.client.freeze(sandbox.id);
    const { beforeBytes, afterBytes } = await stand.client.reclaim(sandbox.id);
    expect(beforeBytes - afterBytes).toBeGreaterThan(SIZE_MIB * MIB * 0.9);
    await stand.client.thaw(sandbox.id);
    expect(await held.ask()).toBe(held.filled);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('a running sandbox keeps its memory, and one that is not there is said to be so', async () => {
    const sandbox = await launch(4);
    await expect(stand.client.reclaim(sandbox.id)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(stand.client.reclaim(stand.id(99))).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
    await expect(stand.client.prefetch(stand.id(99), 1)).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });

  test('a thaw or an end does not wait for a reclaim that goes on, and whoever asked for it is told', async () => {
    await stand.client.swapOn(1_024);
    const sandbox = await launch(5);
    const held = await hold(sandbox, SIZE_MIB, 1);
    await stand.client.freeze(sandbox.id);
    const reclaiming = stand.client.reclaim(sandbox.id).then(
      () => 'done',
      (error: { code: string }) => error.code,
    );
    await stand.client.thaw(sandbox.id);
    expect(['done', 'OVERLOADED']).toContain(await reclaiming);
    expect(await held.ask()).toBe(held.filled);
    await stand.client.freeze(sandbox.id);
    const again = stand.client.reclaim(sandbox.id).catch((error: { code: string }) => error.code);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
    await again;
    expect(stand.leftovers()).toEqual([]);
  });

  test('a launcher that is killed in the middle of a reclaim takes its worker along; the next one goes on', async () => {
    await stand.client.swapOn(1_024);
    const sandbox = await launch(6);
    const held = await hold(sandbox, SIZE_MIB);
    await stand.client.freeze(sandbox.id);
    const { pid } = stand.client.info;
    const reclaiming = stand.client.reclaim(sandbox.id).catch(() => 'lost');
    process.kill(pid, 'SIGKILL');
    await reclaiming;
    await stand.connect(3);
    const { afterBytes } = await stand.client.reclaim(sandbox.id);
    expect(afterBytes).toBeLessThan(8 * MIB);
    await stand.client.thaw(sandbox.id);
    expect(await held.ask()).toBe(held.filled);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    sandbox.close();
    await stand.client.destroy({ id: sandbox.id });
  });
});
