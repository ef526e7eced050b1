/** Limits as their users meet them: full disks, fork bombs, too much memory, and what programs inside are told. */
import { describe, expect, test } from 'vitest';
import type { DsecClient, DsecError, Sandbox } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { refusal } from '#test/helpers/refusal.ts';

let dsec: DsecClient;
let neighbour: Sandbox;

givenPlatform({ overrides: { diskMiB: 4_096 } }, async (given) => {
  ({ dsec } = given);
  neighbour = await dsec.runContainer({ image: 'small', memoryLimitMb: 64, diskLimitMb: 256 });
});

describe('disk (a full sandbox is the sandbox’s own problem)', () => {
  test('ENOSPC inside at the limit; commands, their output and the neighbour go on; room comes back', async () => {
    await using box = await dsec.runContainer({ image: 'small', memoryLimitMb: 256, diskLimitMb: 128 });
    const full = await box.runShell('printf OLD > /w/cfg; dd if=/dev/zero of=/w/fill bs=1M');
    expect(full).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('No space left on device') });
    expect(await box.runShell('echo hi; echo more >&2')).toMatchObject({ exitCode: 0, stdout: 'hi\n', stderr: 'more\n' });
    const long = await box.exec(['seq', '1', '200000']);
    expect([long.stdoutTotalBytes, long.stdoutTruncated]).toEqual([1_288_895, false]);
    const more = Buffer.alloc(100_000);
    for (const refused of await Promise.all([refusal(box.files.write('/w/cfg', more)), refusal(box.files.append('/w/cfg', more))]))
      expect(refused).toMatchObject({ code: 'NO_SPACE', outcome: 'not_applied' });
    expect(await box.files.readText('/w/cfg')).toBe('OLD');
    expect((await neighbour.runShell('dd if=/dev/zero of=/w/f bs=1M count=100 2>/dev/null; wc -c < /w/f; rm /w/f')).stdout).toBe(`${100 * 2 ** 20}\n`);
    expect((await box.runShell('rm /w/fill; echo ok > /w/after; cat /w/after')).stdout).toBe('ok\n');
  });

  test('files beyond the inodes are refused inside, not by the node', async () => {
    await using box = await dsec.runContainer({ image: 'small', diskLimitMb: 16 });
    const many = await box.runShell('i=0; while echo > /w/$i; do i=$((i+1)); done; echo $i');
    expect(many.stderr).toMatch(/No space left/);
    expect(Number(many.stdout)).toBeGreaterThan(500);
  });

  test('stop works while it is full, and gives back what it held', async () => {
    const box = await dsec.runContainer({ image: 'small', diskLimitMb: 64 });
    await box.runShell('dd if=/dev/zero of=/w/fill bs=1M');
    expect((await box.stop())?.status).toBe('stopped');
    const boxes = await Promise.all(Array.from({ length: 14 }, () => dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 256 })));
    const over = await refusal(dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 1_024 }, { timeoutMs: 5_000 }));
    expect(over.code).toBe('NO_CAPACITY');
    await Promise.all(boxes.map((b) => b.stop()));
    await (await dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 1_024 })).stop();
  });
});

describe('processes, memory, files, output', () => {
  test.each(['root', 'agent'])('a fork bomb of %s stays within its limit; control calls and neighbours go on; stop ends it', async (user) => {
    const box = await dsec.runContainer({ image: 'small', pidsLimit: 64, memoryLimitMb: 128, cpuCoresLimit: 0.5 });
    const bounded = await box.runShell('for i in $(seq 300); do sleep 300 & done; wait', { timeoutMs: 20_000, user });
    expect([bounded.ok, bounded.stderr]).toEqual([false, expect.stringMatching(/fork|Resource temporarily unavailable/)]);
    await box.attach(bounded.execId).kill(); // what it left in the background fills the sandbox: nothing more would be let in
    const bomb = box.runShell('f() { f | f & }; f', { timeoutMs: 5_000, user });
    for (let second = 0; second < 3; second += 1) {
      const answers = await Promise.all([
        box.commands(),
        box.refresh(),
        neighbour.exec(['true']),
        box.exec(['true'], { timeoutMs: 5_000 }).catch((e: unknown) => e),
      ]);
      expect(answers[2].ok).toBe(true);
      if (answers[3] instanceof Error) expect((answers[3] as DsecError).code).toBe('PIDS_LIMIT');
    }
    await bomb;
    expect((await box.stop({ timeoutMs: 30_000 }))?.status).toBe('stopped');
  });

  test('memory as a whole is limited, without swap; the command that grew is told', async () => {
    await using box = await dsec.runContainer({ image: 'small', memoryLimitMb: 64 });
    const grown = await box.runShell('dd if=/dev/zero bs=100M count=1 of=/dev/null');
    expect([grown.reason, grown.fault]).toEqual(['oom', 'environment']);
    const four = await box.runShell('for i in 1 2 3 4; do dd if=/dev/zero bs=30M count=1 2>/dev/null | (sleep 1; cat >/dev/null) & done; wait; echo done');
    expect(four.reason === 'oom' || four.ok).toBe(true);
    expect((await box.exec(['echo', 'alive'])).stdout).toBe('alive\n');
  });

  test('open files: the limit is what every process has, and more than the node has is refused', async () => {
    await using box = await dsec.runContainer({ image: 'small', openFilesLimit: 100 });
    expect((await box.runShell('ulimit -n; ulimit -Hn; ulimit -n 200 2>&1 || true')).stdout).toMatch(/^100\n100\n.*(not permitted|limit)/);
    const error = await refusal(dsec.runContainer({ image: 'small', openFilesLimit: 1_000_000 }, { timeoutMs: 5_000 }));
    expect([error.code, error.message]).toEqual(['NO_CAPACITY', expect.stringContaining('openFiles')]);
  });

  test('output is capped as the sandbox says, unless the command says otherwise', async () => {
    await using box = await dsec.runContainer({ image: 'small', outputLimitBytes: 1_024 });
    const capped = await box.exec(['seq', '1', '3000']);
    expect([capped.exitCode, capped.stdout.length, capped.stdoutTruncated, capped.stdoutTotalBytes]).toEqual([0, 1_024, true, 13_893]);
    const own = await box.exec(['seq', '1', '3000'], { outputLimitBytes: 100_000 });
    expect([own.stdout.length, own.stdoutTruncated]).toEqual([13_893, false]);
  });
});

describe('what is said of the limits', () => {
  test('inside, where programs look: memory, processors, a disk of its own size', async () => {
    await using box = await dsec.runContainer({ image: 'small', memoryLimitMb: 256, cpuCoresLimit: 0.5, diskLimitMb: 128 });
    const inside = await box.runShell(
      'head -n 3 /proc/meminfo; cat /sys/devices/system/cpu/online; grep -c ^processor /proc/cpuinfo; echo $OMP_NUM_THREADS $GOMAXPROCS',
    );
    expect(inside.stdout).toBe('MemTotal:         262144 kB\nMemFree:          262144 kB\nMemAvailable:     262144 kB\n0\n1\n1 1\n');
    const [blocks = 0, size = 0] = (await box.exec(['stat', '-f', '-c', '%b %S', '/w'])).stdout.split(' ').map(Number);
    expect(blocks * size).toBeGreaterThan(100 * 2 ** 20);
    expect(blocks * size).toBeLessThanOrEqual(128 * 2 ** 20);
    expect((await box.runShell('echo $OMP_NUM_THREADS', { env: { OMP_NUM_THREADS: '7' } })).stdout).toBe('7\n');
  });

  test('outside, in the sandbox’s state: what was asked for and every default', async () => {
    await using box = await dsec.runContainer({ image: 'small', memoryLimitMb: 64, cpuWeight: 300, swapLimitMb: 16, diskLimitMb: 32, pidsLimit: 99 });
    expect((await box.refresh()).spec.limits).toEqual({
      memoryMiB: 64,
      swapMiB: 16,
      cpuMillis: 1_000,
      cpuWeight: 300,
      pids: 99,
      diskMiB: 32,
      openFiles: null,
      outputBytes: 16 * 1024 * 1024,
    });
  });

  test('out of range is refused by name before anything happens', async () => {
    for (const [field, options] of [
      ['diskLimitMb', { diskLimitMb: 1 }],
      ['memoryLimitMb', { memoryLimitMb: 1e9 }],
      ['cpuWeight', { cpuWeight: 0 }],
    ] as const) {
      const error = await refusal(dsec.runContainer({ image: 'small', ...options }));
      expect([error.code, error.outcome, error.message]).toEqual(['INVALID_ARGUMENT', 'not_applied', expect.stringContaining(field)]);
    }
  });
});
