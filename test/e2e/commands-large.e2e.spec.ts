/** Output by the gigabyte and processes by the hundred: what users of other sandboxes reported, as it has to be here. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cgroupNameOf } from '#runtime/config.ts';
import { type DsecClient, DsecError, type ExecResult, type Sandbox } from '#sdk/mod.ts';
import { type CommandsStand, inParallel, startCommandsStand } from '#test/helpers/commands.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

let stand: CommandsStand;
let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

beforeAll(async () => {
  stand = await startCommandsStand();
  ({ host, dsec, box } = stand);
});
afterAll(() => stand?.close());

const MIB = 1024 * 1024;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('C04: large output', () => {
  const SEQ_BYTES = 1_288_895;
  const SEQ_SHA256 = '5af7b95208fdcff454bab3f5eddf567a688a3796c703d4fef91072e38645c062';
  const isWhole = ({ stdoutBytes, exitCode, truncated }: ExecResult): boolean =>
    exitCode === 0 && !truncated && stdoutBytes.byteLength === SEQ_BYTES && sha256(stdoutBytes) === SEQ_SHA256;

  test('a and d: one stream, 200 of 200 whole', async () => {
    expect((await inParallel(8, 200, () => box.exec(['seq', '1', '200000']))).filter(isWhole)).toHaveLength(200);
  });

  test('b: both streams at once', async () => {
    const result = await box.exec(['sh', '-c', 'seq 1 200000 & seq 1 200000 >&2; wait']);
    expect([sha256(result.stdoutBytes), sha256(result.stderrBytes)]).toEqual([SEQ_SHA256, SEQ_SHA256]);
  });

  test('beyond the documented cap the count is true and the program is not harmed', async () => {
    const result = await box.exec(['sh', '-c', 'head -c 20000000 /dev/zero; exit 3']);
    expect(result).toMatchObject({ exitCode: 3, stdoutTotalBytes: 20_000_000, truncated: true, stdoutDropped: 'limit', reason: 'exited' });
    expect(result.stdoutBytes.byteLength).toBe(16 * MIB);
  });

  test('an exit right after the last byte loses nothing, 100 times', async () => {
    const results = await inParallel(8, 100, () => box.exec(['sh', '-c', 'head -c 1048576 /dev/zero; exit 3']));
    expect(results.filter(({ exitCode, stdoutBytes }) => exitCode === 3 && stdoutBytes.byteLength === MIB)).toHaveLength(100);
  });
});

describe.concurrent('those that take long, at the same time', () => {
  const GIB = 1024 * MIB;
  const peakRssMib = (): number => Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${host.platform.pids().edge}/status`, 'utf8'))?.[1]) / 1_024;

  test('C04 c and d: 1 GiB in one line, for a client that first reads nothing for 5 s; the node’s memory stays', async () => {
    const before = peakRssMib();
    const command = await box.start(`head -c ${GIB} /dev/zero | tr '\\0' x; printf END`, { onFull: 'block' });
    await delay(5_000);
    const hash = createHash('sha256');
    let bytes = 0;
    let last = Buffer.alloc(0);
    for await (const chunk of command.stdout) {
      bytes += chunk.byteLength;
      hash.update(chunk);
      last = Buffer.concat([last, chunk]).subarray(-3);
    }
    expect([bytes, last.toString()]).toEqual([GIB + 3, 'END']);
    expect(hash.digest('hex')).toBe('b768bb3e983711bcb5d7d641d34141634a02cc87b6bccb90d1db76a33402f73f');
    expect(await command.wait()).toMatchObject({ exitCode: 0, stdoutTotalBytes: GIB + 3, stdoutTruncated: false });
    expect(peakRssMib() - before).toBeLessThan(64);
  });

  const PIDS = 128;
  /** A command and a files worker that come when the last place has just gone are counted until they have left again. */
  const JOINING = 2;
  /** Processes that the kernel counts in the sandbox's payload. */
  const processes = (id: string): number => {
    const files = ['pids', 'unified', ''].map((tree) => join('/sys/fs/cgroup', tree, cgroupNameOf(host.platform.config), id, 'payload/pids.current'));
    return Number(readFileSync(files.find((file) => existsSync(file)) ?? expect.unreachable('no count of processes'), 'utf8'));
  };

  const bomb = async (user: string): Promise<void> => {
    const bombed = await dsec.runContainer({ image: 'with-gnu', pidsLimit: PIDS });
    let highest = 0;
    const watch = setInterval(() => {
      highest = Math.max(highest, processes(bombed.id));
    }, 20);
    const bombs = (async () => {
      const loop = await bombed.exec(['bash', '-c', 'for i in $(seq 300); do sleep 300.26 & done; wait'], { user, timeoutMs: 60_000 });
      await bombed.attach(loop.execId).kill(); // what it left fills the sandbox: the next one might not be let in
      await expect.poll(() => processes(bombed.id), { timeout: 20_000 }).toBeLessThan(PIDS / 2);
      await bombed.exec(['sh', '-c', 'f(){ f|f& };f'], { user, timeoutMs: 5_000 });
      return loop;
    })();
    let over = false;
    const end = (): void => {
      over = true;
    };
    bombs.then(end, end);
    while (!over) {
      await expectControl(bombed);
      await delay(1_000);
    }
    clearInterval(watch);
    const loop = await bombs;
    expect(loop).toMatchObject({ exitCode: 254, reason: 'exited' });
    expect(loop.stderr).toMatch(/Resource temporarily unavailable/);
    expect(highest).toBeLessThanOrEqual(PIDS + JOINING);
    expect(highest).toBeGreaterThan(PIDS / 2);
    expect((await bombed.refresh()).spec.limits.pids).toBe(PIDS);
    expect((await bombed.stop({ timeoutMs: 30_000 }))?.status).toBe('stopped');
  };

  /** Calls into the bombed sandbox answer, or say why not; the neighbour sees nothing of it. */
  const expectControl = async (bombed: Sandbox): Promise<void> => {
    for (const call of [() => bombed.exec(['true']), () => bombed.files.readText('/etc/hostname')]) {
      const answer = await (call() as Promise<unknown>).then(
        () => 'answered',
        (thrown: unknown) => (thrown instanceof DsecError ? thrown.code : String(thrown)),
      );
      expect(['answered', 'PIDS_LIMIT']).toContain(answer);
    }
    expect((await box.exec(['true'])).ok).toBe(true);
  };

  test('C26: a fork bomb, as root and as a user: the limit holds, control and the neighbour answer, stop ends it', async () => {
    await Promise.all(['root', 'agent'].map(bomb));
    const left = await promisify(execFile)('pgrep', ['-fxc', 'sleep 300.26']).catch((error: { stdout: string }) => error);
    expect(left.stdout).toBe('0\n');
  });
});
