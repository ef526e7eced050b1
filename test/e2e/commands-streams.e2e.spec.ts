/** Output that many read, that is held back for its readers, that expires: each byte once and the end once, whatever is killed in between. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { pathsOf } from '#runtime/config.ts';
import { type Command, connect, type DsecClient, type ExecEnd, type Sandbox } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

/** Longer than an Edge is away. */
const RETENTION_MS = 4_000;
const KIB = 1_024;

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

givenPlatform({ overrides: { outputRetentionMs: RETENTION_MS } }, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small' });
});

const killEdge = (): void => void process.kill(host.platform.pids().edge ?? expect.unreachable('no Edge'), 'SIGKILL');
/** seq's output from 1 to `n`. */
const seq = (n: number): string => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('');
const digest = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
};
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('readers', () => {
  /** Prints a line every few milliseconds for about two seconds. */
  const LINES = 200;
  const slowly = (): Promise<Command> => box.start(`i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo $i; sleep 0.01; done`);

  test('many clients, who come and go and come back, get every byte once and the end once', async () => {
    const command = await slowly();
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect({ contextFile: host.platform.contextFile })));
    const whole = clients.map((client) => client.attach(box.id, command.execId).stdout.string());
    const inPieces = clients.map(async (client, i) => {
      let text = '';
      for (let ended = false; !ended; ) {
        const reader = client.attach(box.id, command.execId).stdout.with({ offset: Buffer.byteLength(text) });
        ended = true;
        let pieces = 0;
        for await (const chunk of reader) {
          text += Buffer.from(chunk).toString();
          pieces += 1;
          if (pieces <= i + 1) continue;
          ended = false;
          break; // leaves, and comes back
        }
      }
      return text;
    });
    const ends = clients.map((client) => client.attach(box.id, command.execId).wait());
    expect(new Set(await Promise.all([...whole, ...inPieces]))).toEqual(new Set([seq(LINES)]));
    expect(new Set((await Promise.all(ends)).map((end: ExecEnd) => `${end.exitCode} ${end.endedAt}`)).size).toBe(1);
    await Promise.all(clients.map((client) => client.close()));
  });

  test('the Edge is killed twice meanwhile', async () => {
    const command = await slowly();
    const readers = [command.stdout.string(), dsec.attach(box.id, command.execId).stdout.string()];
    const end = command.wait();
    for (let kills = 0; kills < 2; kills += 1) {
      await delay(300);
      killEdge();
      await box.commands(); // it is back
    }
    expect(await Promise.all(readers)).toEqual([seq(LINES), seq(LINES)]);
    expect(await end).toMatchObject({ exitCode: 0, reason: 'exited', stdoutTotalBytes: Buffer.byteLength(seq(LINES)) });
  });

  test('list names what runs and what ran, with its end', async () => {
    const running = await box.start(['sleep', '60']);
    const ran = await box.exec(['sh', '-c', 'exit 4']);
    const views = await box.commands();
    expect(views.find(({ execId }) => execId === running.execId)).toMatchObject({ state: 'running', exitCode: null, reason: null });
    expect(views.find(({ execId }) => execId === ran.execId)).toMatchObject({ state: 'ended', exitCode: 4, reason: 'exited' });
    expect(await running.kill()).toBe(true);
    expect(await running.wait()).toMatchObject({ reason: 'cancelled', signal: 'KILL', fault: 'agent' });
    expect(await running.kill()).toBe(false);
    await expect(box.attach(`ex-${'0'.repeat(24)}`).wait()).rejects.toMatchObject({ code: 'EXEC_NOT_FOUND' });
  });
});

describe('a full log', () => {
  const WINDOW = 64 * KIB;
  const LONG = 200_000; // 1,288,895 bytes: twenty windows
  const logBlocks = (command: Command): number => statSync(join(pathsOf(host.platform.config).sandboxes, box.id, 'exec', `${command.execId}.out`)).blocks * 512;

  test('block: the program waits for a slow reader, who gets all of it; the log stays small', async () => {
    const command = await box.start(`seq 1 ${LONG}`, { onFull: 'block', outputLimitBytes: 4 * 1024 * KIB });
    const small = await box.start(`seq 1 ${LONG}; seq 1 ${LONG} >&2`, { onFull: 'block', outputLimitBytes: WINDOW });
    await expect.poll(async () => (await small.view()).stdout.totalBytes, { timeout: 20_000 }).toBe(WINDOW);
    expect(await small.view()).toMatchObject({ state: 'running', stdout: { totalBytes: WINDOW, storedBytes: WINDOW, truncated: false } });
    const [one, two, err] = await Promise.all([digest(command.stdout), digest(small.stdout), digest(small.stderr)]);
    expect(new Set([one, two, err])).toEqual(new Set([sha256(seq(LONG))]));
    expect(await small.wait()).toMatchObject({ exitCode: 0, stdoutTruncated: false, stdoutTotalBytes: 1_288_895, stdoutDropped: null });
    expect(logBlocks(small)).toBeLessThan(1_288_895); // what was read gave its space back
  });

  test('block: the slowest of two readers sets the pace, and both get all', async () => {
    const command = await box.start(`seq 1 ${LONG}`, { onFull: 'block', outputLimitBytes: WINDOW });
    const slow = (async () => {
      const hash = createHash('sha256');
      let n = 0;
      for await (const chunk of command.stdout) {
        hash.update(chunk);
        if (n++ % 5 === 0) await delay(20);
      }
      return hash.digest('hex');
    })();
    const fast = digest(dsec.attach(box.id, command.execId).stdout.with({ credit: true }));
    expect(await Promise.all([slow, fast])).toEqual([sha256(seq(LONG)), sha256(seq(LONG))]);
  });

  test('block: the Edge is killed while the program waits; its reader goes on', async () => {
    const command = await box.start(`seq 1 ${LONG}`, { onFull: 'block', outputLimitBytes: WINDOW });
    const hash = createHash('sha256');
    let n = 0;
    for await (const chunk of command.stdout) {
      hash.update(chunk);
      if (n++ === 3) killEdge();
    }
    expect(hash.digest('hex')).toBe(sha256(seq(LONG)));
    expect(await command.wait()).toMatchObject({ exitCode: 0, stdoutTruncated: false });
  });

  test('block: a reader that lets go leaves the rest to be truncated, and the result says why', async () => {
    const command = await box.start(`seq 1 ${LONG}; exit 5`, { onFull: 'block', outputLimitBytes: WINDOW });
    for await (const _ of command.stdout) break;
    const end = await command.wait();
    expect(end).toMatchObject({ exitCode: 5, reason: 'exited', stdoutTotalBytes: 1_288_895, stdoutTruncated: true, stdoutDropped: 'lease_lost' });
    const kept = await command.result();
    expect(seq(LONG)).toContain(kept.stdout);
    expect(kept.stdoutBytes.byteLength).toBeLessThanOrEqual(WINDOW);
  });

  test('roll: without readers the newest bytes are kept, and a reader may begin with them', async () => {
    const command = await box.start(`seq 1 ${LONG}; sleep 60`, { onFull: 'roll', outputLimitBytes: WINDOW });
    for await (const _ of command.stdout) break;
    while ((await command.view()).stdout.totalBytes < 1_288_895) await delay(20);
    const { stdout } = await command.view();
    expect(stdout).toMatchObject({ storedBytes: 1_288_895, truncated: false, dropped: null });
    expect(stdout.storedBytes - stdout.discardedBytes).toBeLessThanOrEqual(WINDOW);
    const reader = dsec.attach(box.id, command.execId).stdout;
    await expect(reader.with({ until: 'now' }).string()).rejects.toMatchObject({ code: 'OUTPUT_EXPIRED', details: { firstByte: stdout.discardedBytes } });
    const newest = await reader.with({ until: 'now', lost: 'skip' }).string();
    expect(newest).toBe(seq(LONG).slice(stdout.discardedBytes));
    await command.kill();
  });

  test('a time-out ends a program that waits, at once', async () => {
    const command = await box.start('yes', { onFull: 'block', outputLimitBytes: WINDOW, timeoutMs: 500 });
    let bytes = 0;
    for await (const chunk of command.stdout) bytes += chunk.byteLength;
    expect(await command.wait()).toMatchObject({ reason: 'timeout', stdoutTotalBytes: bytes, stdoutTruncated: false });
  });
});

describe.concurrent('output is kept for a documented time', () => {
  const files = (): string[] => readdirSync(join(pathsOf(host.platform.config).sandboxes, box.id, 'exec'));

  test('then it is a typed error, the result stays, and the command is never run again', async () => {
    const first = await box.runShell('echo kept; echo err >&2; echo ran >> /w/once; exit 6', { key: 'expires' });
    expect(await box.attach(first.execId).result()).toMatchObject({ stdout: 'kept\n', stderr: 'err\n', exitCode: 6 });
    await expect
      .poll(
        () =>
          box
            .attach(first.execId)
            .stdout.string()
            .then(
              () => 'kept',
              (thrown: { code: string }) => thrown.code,
            ),
        { timeout: 40_000 },
      )
      .toBe('OUTPUT_EXPIRED');
    expect(await box.attach(first.execId).wait()).toMatchObject({ exitCode: 6, stdoutTotalBytes: 5, stderrTotalBytes: 4, reason: 'exited' });
    expect(files()).toContain(`${first.execId}.exit`);
    expect(files()).not.toContain(`${first.execId}.err`);
    killEdge();
    await expect(box.attach(first.execId).stdout.string()).rejects.toMatchObject({ code: 'OUTPUT_EXPIRED' });
    await expect(box.runShell('echo other', { key: 'expires' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
    expect(await box.attach(first.execId).wait()).toMatchObject({ exitCode: 6 });
    expect((await box.exec(['cat', '/w/once'])).stdout).toBe('ran\n');
  });

  test('what runs, and what holds its pipes, expires not', async () => {
    const running = await box.start('echo first; sleep 5; echo last');
    const left = await box.runShell('echo mine; (sleep 5; echo late) &');
    await delay(RETENTION_MS);
    await box.exec(['true']);
    expect(await running.stdout.string()).toBe('first\nlast\n');
    expect(await box.attach(left.execId).stdout.with({ until: 'pipe' }).string()).toBe('mine\nlate\n');
  });
});

test('a key names one command for ever: after the Edge, the bus and the launcher were killed too', async () => {
  const launcherPid = (): number => Number(readdirSync('/proc').find((pid) => /^\d+$/.test(pid) && isLauncher(pid)) ?? expect.unreachable('no launcher runs'));
  const isLauncher = (pid: string): boolean => {
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return commandLine.includes('dsec-launcher') && commandLine.includes(host.dir);
    } catch {
      return false; // ended meanwhile
    }
  };
  /** Its output is not read: what was killed may need longer to come back than output is kept. */
  const order = async () => (await box.start('echo run >> /w/keyed; exit 3', { key: 'once-for-all' })).wait();
  const first = await order();
  expect(first).toMatchObject({ reason: 'exited', exitCode: 3 });
  const { edge, control } = host.platform.pids();
  for (const pid of [host.platform.bus.pid(), launcherPid(), control, edge]) if (pid) process.kill(pid, 'SIGKILL');
  const again = await order();
  expect([again.execId, again.exitCode, again.endedAt]).toEqual([first.execId, 3, first.endedAt]);
  expect((await box.exec(['cat', '/w/keyed'])).stdout).toBe('run\n');
  await expect(box.start('echo other', { key: 'once-for-all' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
});

test('root is root in an image without users', async () => {
  await using bare = await dsec.runContainer({ image: 'small' });
  await bare.runShell('rm /etc/passwd /etc/group');
  expect((await bare.runShell('id -u; id -g; echo $HOME $USER', { user: 'root' })).stdout).toBe('0\n0\n/root root\n');
  await expect(bare.exec(['true'], { user: 'agent' })).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
});
