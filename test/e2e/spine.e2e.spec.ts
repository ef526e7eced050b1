/** The spine as its users see it: SDK against a whole platform on this machine. */
import { describe, expect, test } from 'vitest';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small', labels: { suite: 'spine' } });
});

describe('the session of the paper', () => {
  test('runs a shell command and keeps state between commands', async () => {
    const hello = await box.runShell('echo hello world; echo careful >&2; exit 3');
    expect(hello).toMatchObject({ stdout: 'hello world\n', stderr: 'careful\n', exitCode: 3, signal: null, reason: 'exited', fault: 'agent' });
    await box.runShell('echo kept > /w/state');
    expect((await box.exec(['cat', '/w/state'])).stdout).toBe('kept\n');
  });

  test('`await using` ends the sandbox', async () => {
    let id = '';
    {
      await using short = await dsec.runContainer({ image: 'small' });
      id = short.id;
      expect((await short.exec(['true'])).ok).toBe(true);
    }
    expect((await dsec.get(id)).status).toBe('stopped');
  });

  test('user, cwd and env are the caller’s; the environment of the platform is not there', async () => {
    const result = await box.runShell('id -u; pwd; echo $COLOUR; env | grep -ci dsec', { user: 'agent', cwd: '/w', env: { COLOUR: 'red' } });
    expect(result.stdout).toBe('1000\n/w\nred\n0\n');
  });

  test('the limits hold: what is asked for is what the sandbox has', async () => {
    await using small = await dsec.runContainer({ image: 'small', memoryLimitMb: 32, pidsLimit: 16 });
    const bomb = await small.runShell('for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 30 & done; wait', { timeoutMs: 5_000 });
    expect(bomb.exitCode).not.toBe(0);
    expect(bomb.stderr).toMatch(/fork|Resource/i);
    expect((await small.exec(['true'], { timeoutMs: 5_000 })).ok).toBe(true);
  });
});

describe('client keys', () => {
  test('twenty creates under one key make one sandbox; another body is a conflict', async () => {
    const options = { image: 'small', key: 'same-key', labels: { n: '1' } };
    const boxes = await Promise.all(Array.from({ length: 20 }, () => dsec.runContainer(options)));
    expect(new Set(boxes.map((b) => b.id)).size).toBe(1);
    expect((await refusal(dsec.runContainer({ ...options, labels: { n: '2' } }))).code).toBe('KEY_CONFLICT');
    await boxes[0]?.stop();
  });

  test('twenty equal commands under one key run once', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => box.runShell('echo ran >> /w/once; cat /w/once | wc -l', { key: 'once' })));
    expect(new Set(results.map((r) => r.stdout))).toEqual(new Set(['1\n']));
    expect((await refusal(box.runShell('echo other', { key: 'once' }))).code).toBe('KEY_CONFLICT');
  });
});

describe('groups, lists, histories', () => {
  test('a group is created whole, listed by label, stopped whole', async () => {
    const group = await dsec.runContainers({ image: 'small', memoryLimitMb: 32, labels: { batch: 'g1' } }, { count: 24 });
    expect(group.failures).toEqual([]);
    const outputs = await Promise.all(group.sandboxes.map((b) => b.exec(['hostname'])));
    expect(new Set(outputs.map((o) => o.stdout)).size).toBe(24);
    const listed: string[] = [];
    for await (const one of dsec.list({ labels: { batch: 'g1' }, status: 'running', pageSize: 7 })) listed.push(one.id);
    expect(listed.sort()).toEqual(group.sandboxes.map((b) => b.id).sort());
    await group.stopAll();
    for await (const one of dsec.list({ labels: { batch: 'g1' }, status: 'running' })) expect.unreachable(`${one.id} still listed as running`);
  });

  test('the history names each commit and the state it led to', async () => {
    const life = await dsec.runContainer({ image: 'small' });
    await life.stop();
    const commits = [];
    for await (const commit of life.events())
      commits.push({ version: commit.version, events: commit.events.map((e) => e.type), status: (commit.state as { status: string }).status });
    expect(commits).toEqual([
      { version: 1, events: ['SandboxAdmitted', 'SandboxPreparing', 'SandboxStarting'], status: 'starting' },
      { version: 2, events: ['SandboxStarted'], status: 'running' },
      { version: 3, events: ['SandboxStopping'], status: 'stopping' },
      { version: 4, events: ['SandboxStopped'], status: 'stopped' },
    ]);
  });
});

describe('lives', () => {
  test('idle and total life end a sandbox by themselves; a running command keeps it from being idle', async () => {
    const [idle, busy, total] = await Promise.all([
      dsec.runContainer({ image: 'small', ttlRunningStop: 1 }),
      dsec.runContainer({ image: 'small', ttlRunningStop: 5 }),
      dsec.runContainer({ image: 'small', ttlTotal: 2 }),
    ]);
    const result = await busy.runShell('sleep 7; echo done');
    expect(result.stdout).toBe('done\n');
    await expect.poll(async () => (await idle.refresh()).stopReason, { timeout: 30_000 }).toBe('idle');
    await expect.poll(async () => (await total.refresh()).stopReason, { timeout: 30_000 }).toBe('total_life');
    await busy.stop();
  });

  test('stop is a goal: in parallel, repeated, and of what is already gone', async () => {
    const victim = await dsec.runContainer({ image: 'small' });
    await Promise.all([victim.stop(), victim.stop(), victim.delete()]);
    await victim.stop();
    expect((await refusal(victim.exec(['true']))).code).toBe('SANDBOX_ENDED');
  });
});

describe('bad input', () => {
  const cases: [string, () => Promise<unknown>, string, RegExp][] = [
    ['unknown image', () => dsec.runContainer({ image: 'smal' }), 'IMAGE_NOT_FOUND', /small/],
    ['unknown layer', () => dsec.runContainer({ image: 'small', toolkits: ['nothing'] }), 'IMAGE_NOT_FOUND', /nothing/],
    ['unknown digest', () => dsec.runContainer({ image: `sha256:${'0'.repeat(64)}` }), 'LAYER_NOT_FOUND', /sha256/],
    ['unknown user', () => box.exec(['true'], { user: 'nobody-here' }), 'USER_NOT_FOUND', /nobody-here/],
    ['unknown cwd', () => box.exec(['true'], { cwd: '/not/there' }), 'CWD_NOT_FOUND', /\/not\/there/],
    ['unknown program', () => box.exec(['/no/such/binary']), 'COMMAND_NOT_FOUND', /\/no\/such\/binary/],
    ['zero memory', () => dsec.runContainer({ image: 'small', memoryLimitMb: 0 }), 'INVALID_ARGUMENT', /memoryLimitMb/],
    ['negative cpu', () => dsec.runContainer({ image: 'small', cpuCoresLimit: -1 }), 'INVALID_ARGUMENT', /cpuCoresLimit/],
    ['more memory than the node has', () => dsec.runContainer({ image: 'small', memoryLimitMb: 4_000_000 }), 'NO_CAPACITY', /memory|room|capacity/i],
    ['a label of 2 MiB', () => dsec.runContainer({ image: 'small', labels: { big: 'x'.repeat(2 * 1024 * 1024) } }), 'INVALID_ARGUMENT', /labels/],
    ['a path with a line break', () => box.exec(['true'], { cwd: '/w\n/x' }), 'INVALID_ARGUMENT', /cwd/],
    ['an id that nobody has', () => dsec.sandbox(`sb-0-${'f'.repeat(20)}-node-1`).stop(), 'SANDBOX_NOT_FOUND', /no sandbox/],
    ['a word that is no id', async () => dsec.sandbox('../etc').exec(['true']), 'INVALID_ARGUMENT', /sandbox/],
    ['a script of 3 MiB', () => box.runShell(`echo ${'x'.repeat(3 * 1024 * 1024)}`), 'INVALID_ARGUMENT', /131,?07|argument|stdin/],
  ];
  test.each(cases)('%s', async (_, call, code, message) => {
    const error = await refusal(call());
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect((await box.exec(['true'])).ok).toBe(true);
  });

  test('a sandbox of another project is not found, and the bus itself lets nobody ask', async () => {
    const mine = await connect({ contextFile: host.platform.contextFile });
    await expect(
      refusal(mine.sandbox(box.id.replace('node-1', 'node-2')).exec(['true'], { timeoutMs: 1_000, signal: AbortSignal.timeout(3_000) })),
    ).resolves.toMatchObject({ name: 'DsecError' });
    await mine.close();
  });
});

describe('output', () => {
  test('large output is exact, in both streams at once', async () => {
    const result = await box.runShell('seq 1 200000 & seq 1 200000 >&2; wait');
    expect([result.stdoutTotalBytes, result.stderrTotalBytes]).toEqual([1_288_895, 1_288_895]);
    expect(result.stderr).toBe(result.stdout);
  });

  test('bytes stay bytes, and a stream decodes whole characters', async () => {
    expect([...(await box.runShell(String.raw`printf '\377\376\000\200A'`)).stdoutBytes]).toEqual([0xff, 0xfe, 0, 0x80, 0x41]);
    const command = await box.start(String.raw`printf '\342'; sleep 0.3; printf '\202\254'`);
    let text = '';
    for await (const piece of command.stdout.text()) text += piece;
    expect(text).toBe('€');
  });

  test('beyond the cap the count is true, the flag is set and the program ends by itself', async () => {
    const result = await box.runShell('seq 1 3000; exit 4', { outputLimitBytes: 1_024 });
    expect(result).toMatchObject({ exitCode: 4, stdoutTotalBytes: 13_893, stdoutTruncated: true });
    expect(result.stdoutBytes.byteLength).toBe(1_024);
  });

  test('a time-out ends the whole tree and keeps what was printed', async () => {
    const result = await box.runShell('trap "" TERM; echo partial; (exec sleep 98761) & setsid sleep 98762 & sleep 98763', { timeoutMs: 1_000 });
    expect(result).toMatchObject({ reason: 'timeout', stdout: 'partial\n' });
    const left = await box.runShell("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null | grep -c 'sleep 9876[1-3]'");
    expect(left.stdout).toBe('0\n');
  });

  test('a background child does not hold the call, and lives on', async () => {
    const started = await box.runShell('sleep 4321 & echo started');
    expect(started.stdout).toBe('started\n');
    expect((await box.runShell('ps | grep -c "[s]leep 4321"')).stdout).toBe('1\n');
  });
});
