/**
 * Snapshots and forks whose Edge is killed at a random moment, the packer with it, and those that cannot be made: what was asked for is
 * there once, the sandbox runs and has missed nothing, and nothing half-done is left.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { inside } from '#test/helpers/files.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

const ROUNDS = 6;
/** Reading takes some 100 ms here: kills land before, in and after it. */
const KILL_WITHIN_MS = 400;
const BACK_WITHIN_MS = 30_000;

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

givenPlatform({ restartMaxMs: 100 }, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small', memoryLimitMb: 64 });
  await inside(box, 'dd if=/dev/urandom of=/w/large bs=1M count=100 2>/dev/null; i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo $i > /w/$i; done');
});

const killEdge = async (): Promise<void> => {
  const { edge } = host.platform.pids();
  if (edge === undefined) throw new Error('no Edge runs');
  process.kill(edge, 'SIGKILL');
  await expect.poll(() => host.platform.pids().edge !== edge, { timeout: BACK_WITHIN_MS }).toBe(true);
};

/** Packers of this platform that are alive. */
const packers = (): string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return words[0]?.endsWith('/dsec-pack') && words.some((word) => word.startsWith(host.dir));
    } catch {
      return false; // it has just ended
    }
  });

test('killed at any step: the snapshot is made once, the sandbox goes on, its copy is whole', { timeout: 240_000 }, async () => {
  const ticking = await box.start('i=0; while [ ! -e /w/enough ]; do i=$((i+1)); echo $i; sleep 0.05; done', { onFull: 'truncate' });
  for (let round = 0; round < ROUNDS; round += 1) {
    await inside(box, `echo ${round} > /w/round; dd if=/dev/urandom of=/w/large bs=1M count=40 conv=notrunc 2>/dev/null`);
    const making =
      round % 2 === 0 ? box.snapshot({ snapshotId: `kill-${round}`, timeoutMs: 120_000 }) : box.fork(2, { key: `kill-${round}` as never, timeoutMs: 120_000 });
    making.catch(() => undefined); // looked at below
    await delay(Math.random() * KILL_WITHIN_MS);
    await killEdge();
    const made = await making;
    const sum = await inside(box, 'cat /w/round; md5sum /w/large');
    const copies = 'snapshotId' in made ? [await dsec.runContainer({ image: { snapshot: made.snapshotId }, memoryLimitMb: 64 })] : made.sandboxes;
    expect(copies).toHaveLength(round % 2 === 0 ? 1 : 2);
    for (const copy of copies) {
      expect(await inside(copy, 'cat /w/round; md5sum /w/large')).toBe(sum);
      await copy.stop();
    }
  }
  const names = [];
  for await (const { id } of dsec.snapshots({ sandboxId: box.id })) names.push(id);
  expect(names).toEqual(Array.from({ length: ROUNDS / 2 }, (_, n) => `kill-${2 * n}`));
  await inside(box, 'touch /w/enough');
  await ticking.wait();
  const lines = (await ticking.stdout.string()).trim().split('\n').map(Number);
  expect(lines).toEqual(lines.map((_, n) => n + 1));
});

test('nothing of them is left: no packer, no half-made files', async () => {
  await box.snapshot(); // sweeps what killed ones left
  expect(readdirSync(join(host.dir, 'data/layers/build'))).toEqual([]);
  expect(readdirSync(join(host.dir, 'data/layers/tmp'))).toEqual([]);
  expect(packers()).toEqual([]);
});

describe('what cannot be', () => {
  test('a stopping, ended or unknown sandbox has none; nobody is harmed', async () => {
    const gone = await dsec.runContainer({ image: 'small' });
    await gone.stop({ wait: false });
    expect(['INVALID_STATE', 'SANDBOX_ENDED']).toContain((await refusal(gone.snapshot())).code);
    await gone.stop();
    expect((await refusal(gone.snapshot())).code).toBe('SANDBOX_ENDED');
    expect((await refusal(gone.fork(2))).code).toBe('SANDBOX_ENDED');
  });

  test('a second snapshot at the same time is refused or made, and the first is not disturbed', async () => {
    const results = await Promise.allSettled([
      box.snapshot({ snapshotId: 'twin-a' }),
      box.snapshot({ snapshotId: 'twin-b' }),
      box.snapshot({ snapshotId: 'twin-a' }),
    ]);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as { code: string }).code] : []));
    for (const code of refused) expect(code).toBe('INVALID_STATE');
    expect(results.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await inside(box, 'echo alive')).toBe('alive\n');
  });

  test('a paused sandbox is snapshotted as it rests, and stays paused', async () => {
    await using paused = await dsec.runContainer({ image: 'small' });
    await inside(paused, 'echo asleep > /w/state');
    await paused.pause();
    const { snapshotId, facts } = await paused.snapshot();
    expect((await paused.refresh()).status).toBe('paused');
    expect(facts.files).toBeGreaterThan(0);
    await using copy = await dsec.runContainer({ image: { snapshot: snapshotId } });
    expect(await inside(copy, 'cat /w/state')).toBe('asleep\n');
  });

  test('a disk of its own that is full can still be snapshotted (C21)', async () => {
    await using full = await dsec.runContainer({ image: 'small', diskLimitMb: 32 });
    await full.runShell('printf OLD > /w/cfg; dd if=/dev/zero of=/w/fill bs=1M');
    const { snapshotId } = await full.snapshot();
    await using copy = await dsec.runContainer({ image: { snapshot: snapshotId }, diskLimitMb: 32 });
    expect(await inside(copy, 'cat /w/cfg; echo; rm /w/fill; echo ok > /w/after; cat /w/after')).toBe('OLD\nok\n');
    expect(await inside(full, 'rm /w/fill; echo ok > /w/after; cat /w/after')).toBe('ok\n');
  });
});
