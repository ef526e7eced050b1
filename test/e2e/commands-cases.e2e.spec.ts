/** What users of other sandboxes reported about commands, as it has to be here: through the SDK, against a whole platform. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { type CommandsStand, inParallel, startCommandsStand, timed } from '#test/helpers/commands.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

let stand: CommandsStand;
let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

beforeAll(async () => {
  stand = await startCommandsStand({ pidsLimit: 1_000 });
  ({ host, dsec, box } = stand);
});
afterAll(() => stand?.close());

const MIB = 1024 * 1024;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
/** How many processes of the sandbox have a command line that matches. */
const count = async (pattern: string): Promise<number> => {
  const { stdout } = await box.runShell(`for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null | grep -c '${pattern}'`);
  return Number(stdout);
};
describe('C01: a child in the background does not hold the call', () => {
  test.each([
    ['a', 'sleep 60.1 & echo started', 'sleep 60[.]1'],
    ['b', 'nohup sleep 60.2 & echo started', 'sleep 60[.]2'],
    ['c', '(setsid sleep 60.3 &); echo started', 'sleep 60[.]3'],
  ])('%s, three times in one sandbox', async (_, script, child) => {
    for (let round = 1; round <= 3; round += 1) {
      const result = await box.exec(['sh', '-c', script]);
      expect(result).toMatchObject({ exitCode: 0, reason: 'exited', pipesOpen: true });
      expect(result.stdout).toMatch(/^started\n/);
      expect(await count(child)).toBe(round); // none has ended: the call did not wait for it
    }
  });

  test('d: what it prints later is its own command’s, and nobody else’s', async () => {
    const { stdout, execId } = await box.exec(['sh', '-c', '(until [ -e /tmp/late ]; do sleep 0.05; done; echo late) & echo started']);
    expect(stdout).toBe('started\n');
    const others = Promise.all(Array.from({ length: 10 }, (_, i) => box.runShell(`[ ${i} = 5 ] && touch /tmp/late; sleep 0.${i}5; echo other`)));
    expect(await box.attach(execId).stdout.with({ until: 'pipe' }).string()).toBe('started\nlate\n');
    expect(new Set((await others).map((other) => other.stdout))).toEqual(new Set(['other\n']));
    expect((await box.attach(execId).view()).pipesOpen).toBe(false);
  });

  test('stop ends all of them', async () => {
    await using other = await dsec.runContainer({ image: 'with-gnu' });
    await other.runShell('sleep 60.4 & nohup sleep 60.4 & (setsid sleep 60.4 &)');
    await other.stop();
    const left = await promisify(execFile)('pgrep', ['-fxc', 'sleep 60.4']).catch((error: { stdout: string }) => error);
    expect(left.stdout).toBe('0\n');
  });
});

test('C02: a time-out ends the tree, keeps the output, and is a reason of its own', async () => {
  const older = await box.runShell('sleep 4444 & echo');
  const script = 'trap "" TERM; echo partial; (exec sleep 98761) & setsid sleep 98762 & sleep 98763';
  const { ms, value } = await timed(box.exec(['sh', '-c', script], { timeoutMs: 2_000 }));
  expect(ms).toBeGreaterThan(1_990);
  expect(value).toMatchObject({ reason: 'timeout', stdout: 'partial\n', fault: 'agent', ok: false });
  expect(await count('sleep 9876[1-3]')).toBe(0);
  expect(await count('sleep 444[4]')).toBe(1);
  expect((await box.exec(['true'])).ok).toBe(true);
  await box.attach(older.execId).kill();
  await expect.poll(() => count('sleep 444[4]'), { timeout: 20_000 }).toBe(0);
});

describe('C10: bytes are bytes, text is whole characters', () => {
  const cases: [string, string, number[] | null, string][] = [
    ['a', String.raw`printf '\377\376\000\200A'`, [0xff, 0xfe, 0, 0x80, 0x41], '\uFFFD\uFFFD\0\uFFFDA'],
    ['b', String.raw`printf '\342'; sleep 0.3; printf '\202\254'`, null, '€'],
    ['c', `awk 'BEGIN{printf "a"; for(i=0;i<50000;i++) printf "€"}'`, null, `a${'€'.repeat(50_000)}`],
    ['d', String.raw`printf '\342\202'`, [0xe2, 0x82], '\uFFFD'],
  ];
  const cli = (...args: string[]) =>
    promisify(execFile)(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), ...args], {
      encoding: 'buffer',
      env: { ...process.env, DSEC_CONTEXT: host.platform.contextFile },
      maxBuffer: 4 * MIB,
    });

  test.each(cases)('%s', async (_, script, bytes, text) => {
    const result = await box.exec(['sh', '-c', script]);
    expect(result.stdout).toBe(text);
    if (bytes) expect([...result.stdoutBytes]).toEqual(bytes);
    let streamed = '';
    for await (const piece of (await box.start(['sh', '-c', script])).stdout.text()) streamed += piece;
    expect(streamed).toBe(text);
    const onTerminal = await box.exec(['sh', '-c', script], { terminal: { rows: 24, columns: 80 } });
    expect(Buffer.from(onTerminal.stdoutBytes)).toEqual(Buffer.from(result.stdoutBytes));
    const [plain, json] = await Promise.all([cli('exec', box.id, '--', 'sh', '-c', script), cli('exec', '--json', box.id, '--', 'sh', '-c', script)]);
    expect(plain.stdout.equals(Buffer.from(result.stdoutBytes))).toBe(true);
    expect(JSON.parse(json.stdout.toString('utf8'))).toMatchObject({ stdout: text });
  });

  test('c is byte for byte what awk wrote', async () => {
    const { stdoutBytes } = await box.exec(['sh', '-c', cases[2]?.[1] ?? '']);
    expect([stdoutBytes.byteLength, sha256(stdoutBytes)]).toEqual([150_001, 'e04d2e06232a97815cb807c75a761eab804713b554b83cf89db845e76dbbdb8a']);
  });
});

describe('C15: how it ended', () => {
  test.each([
    ['exit 7', 7, null, 'exited'],
    ['exit 255', 255, null, 'exited'],
    ['kill -TERM $$', 143, 'TERM', 'signaled'],
    ['kill -KILL $$', 137, 'KILL', 'signaled'],
    ['kill -SEGV $$', 139, 'SEGV', 'signaled'],
    ['kill -ABRT $$', 134, 'ABRT', 'signaled'],
    ['kill -PIPE $$', 141, 'PIPE', 'signaled'],
    ['kill -HUP $$', 129, 'HUP', 'signaled'],
    ['exit 137', 137, null, 'exited'],
    ['no_such_cmd_xyz', 127, null, 'exited'],
    ['touch /tmp/nx; /tmp/nx', 126, null, 'exited'],
  ])('sh -c %j', async (script, exitCode, signal, reason) => {
    expect(await box.exec(['sh', '-c', script])).toMatchObject({ exitCode, signal, reason, fault: 'agent', ok: false });
  });

  test('what cannot be started is a typed error and leaves nothing', async () => {
    await expect(box.exec(['/no/such/binary'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await expect(box.exec(['/tmp/nx'])).rejects.toMatchObject({ code: 'COMMAND_NOT_EXECUTABLE' });
    expect((await box.runShell('ps -o stat | grep -c "^Z"')).stdout).toBe('0\n');
  });

  test('a pipeline ends as pipelines do, with every signal at its default', async () => {
    expect(await box.exec(['sh', '-c', 'yes | head -n 1'])).toMatchObject({ stdout: 'y\n', stderr: '', exitCode: 0 });
    expect((await box.exec(['grep', '-E', 'Sig(Ign|Blk)', '/proc/self/status'])).stdout).toBe('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
  });

  test.each([
    'HUP',
    'INT',
    'QUIT',
    'ILL',
    'TRAP',
    'ABRT',
    'BUS',
    'FPE',
    'KILL',
    'USR1',
    'SEGV',
    'USR2',
    'PIPE',
    'ALRM',
    'TERM',
    'XCPU',
    'XFSZ',
    'VTALRM',
    'PROF',
    'SYS',
  ] as const)('signal %s is sent and seen by name', async (signal) => {
    const command = await box.start(['sleep', '300']);
    expect(await command.signal(signal)).toBe(true);
    expect(await command.wait()).toMatchObject({ signal, reason: signal === 'KILL' ? 'cancelled' : 'signaled' });
    expect(await command.signal(signal)).toBe(false);
  });

  test('out of memory is told apart, of a program and of a shell’s child; the sandbox goes on', async () => {
    await using small = await dsec.runContainer({ image: 'small', memoryLimitMb: 48 });
    const oom = { reason: 'oom', exitCode: 137, fault: 'environment', retry: 'never' };
    expect(await small.exec(['tail', '/dev/zero'])).toMatchObject({ ...oom, signal: 'KILL', oomKills: 1 });
    expect(await small.exec(['sh', '-c', 'tail /dev/zero; exit $?'])).toMatchObject({ ...oom, signal: null, oomKills: 1 });
    expect(await small.exec(['sh', '-c', 'tail /dev/zero; echo survived'])).toMatchObject({ reason: 'exited', exitCode: 0, oomKills: 1 });
    expect(await small.exec(['sh', '-c', 'kill -KILL $$'])).toMatchObject({ reason: 'signaled', exitCode: 137, oomKills: 0 });
    const [hog, bystander] = await Promise.all([small.exec(['tail', '/dev/zero']), small.exec(['sh', '-c', 'sleep 1; false'])]);
    expect([hog.reason, bystander.reason, bystander.oomKills]).toEqual(['oom', 'exited', 0]);
  });
});

describe('C16: standard input ends', () => {
  const ZEROS = Buffer.alloc(10 * MIB);
  /** One that waits for input that never comes ends with this time-out, not by itself. */
  const WAITING_MS = 10_000;

  test('a: none given is none', async () => {
    const counted = await box.exec(['wc', '-c'], { timeoutMs: WAITING_MS });
    expect([counted.reason, counted.stdout.trim()]).toEqual(['exited', '0']);
  });

  test('a2: empty but present, 200 of 200', async () => {
    const results = await inParallel(8, 200, () => box.exec(['cat'], { stdin: '', timeoutMs: WAITING_MS }));
    expect(results.filter(({ exitCode, stdoutBytes }) => exitCode === 0 && stdoutBytes.byteLength === 0)).toHaveLength(200);
  });

  test('b, c, d: given whole', async () => {
    expect(await box.exec(['cat'], { stdin: 'abc' })).toMatchObject({ stdout: 'abc', exitCode: 0 });
    expect((await box.exec(['sha256sum'], { stdin: ZEROS })).stdout).toMatch(/^e5b844cc57f57094ea4585e235f36c78c1cd222262bb89d53c94dcb4d6b3e55d/);
    expect(await box.exec(['head', '-c', '1'], { stdin: ZEROS })).toMatchObject({ stdoutTotalBytes: 1, exitCode: 0 });
  });

  test('e: written in parts; nothing is not the end; after the end is an error', async () => {
    const command = await box.start(['cat'], { stdin: 'open' });
    await command.stdin.write('x');
    await command.stdin.write('');
    await command.stdin.write('y');
    await command.stdin.close();
    await expect(command.stdin.write('z')).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    expect(await command.result()).toMatchObject({ stdout: 'xy', exitCode: 0 });
  });
});

describe('C29: caps that do not look like crashes', () => {
  test('d: what is beyond a cap is counted and dropped, and the exit code is the program’s own', async () => {
    const capped = await box.exec(['seq', '1', '3000'], { outputLimitBytes: 1_024 });
    expect(capped).toMatchObject({ exitCode: 0, reason: 'exited', stdoutTruncated: true, stdoutTotalBytes: 13_893 });
    expect(capped.stdout).toBe(
      Array.from({ length: 3_000 }, (_, i) => `${i + 1}\n`)
        .join('')
        .slice(0, 1_024),
    );
  });

  test('e: a program that ends right after a MiB of output, 200 of 200', async () => {
    const script = 'head -c 1048576 /dev/zero; exit 3';
    const results = await inParallel(4, 200, () => box.exec(['sh', '-c', script], { outputLimitBytes: 1_024 }));
    expect(results.filter((r) => r.exitCode === 3 && r.reason === 'exited' && r.stdoutTotalBytes === MIB && r.stdoutBytes.byteLength === 1_024)).toHaveLength(
      200,
    );
  });

  test('f: four processes that are too much together: one limit for all of them, and the result says so', async () => {
    await using small = await dsec.runContainer({ image: 'small', memoryLimitMb: 128 });
    const hold = 'x=$(head -c 50000000 /dev/zero | tr "\\0" x); sleep 5';
    const together = await small.exec([
      'sh',
      '-c',
      `for i in 1 2 3 4; do sh -c '${hold}' & pids="$pids $!"; done; for p in $pids; do wait $p || code=$?; done; exit $code`,
    ]);
    expect(together).toMatchObject({ reason: 'oom', exitCode: 137, fault: 'environment' });
    expect(together.oomKills).toBeGreaterThan(0);
    expect((await small.exec(['sh', '-c', `${hold.replace('sleep 5', 'echo alone')}`])).stdout).toBe('alone\n');
  });
});
