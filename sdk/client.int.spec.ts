/** The client against a responder over a real nats-server: the whole session, and every fault of delivery it must hide. */
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DsecError, wireError } from '#bus/errors.ts';
import { type TestNatsServer, startNatsServer } from '#test/helpers/nats-server.ts';
import { type DsecClient, connect } from './mod.ts';
import { FakePlatform } from './testing/fake-platform.ts';
import { PROJECT } from './testing/records.ts';

let server: TestNatsServer;
let platform: FakePlatform;
let dsec: DsecClient;

beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  platform = await FakePlatform.start(server.url);
  dsec = await connect({ servers: [server.url], project: PROJECT });
});
afterEach(async () => {
  await dsec.close();
  await platform.stop();
});

const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (thrown: unknown) => (thrown instanceof DsecError ? thrown.code : String(thrown)),
  );

describe('one sandbox', () => {
  test('the session of the paper: run, shell, stop', async () => {
    await using box = await dsec.runContainer(
      { image: 'debian', memoryLimitMb: 4_096, cpuCoresLimit: 4, ttlRunningStop: 300, networkRules: { npm: false, pypi: true }, initUser: 'root' },
      { timeoutMs: 120_000 },
    );
    const result = await box.runShell('echo hello world');
    expect([result.stdout, result.stderr, result.exitCode, result.ok]).toEqual(['hello world\n', '', 0, true]);
    expect((await box.stop())?.status).toBe('stopped');
  });

  test('leaving the block stops it, once', async () => {
    {
      await using box = await dsec.runContainer({ image: 'debian' });
      expect(box.status).toBe('running');
    }
    expect(platform.count('stop')).toBe(1);
  });

  test('the same key gives the same sandbox, another body is a conflict, nothing new is made', async () => {
    const [a, b] = await Promise.all([dsec.runContainer({ image: 'debian', key: 'k1' }), dsec.runContainer({ image: 'debian', key: 'k1' })]);
    const c = await dsec.runContainer({ image: 'debian', key: 'k1' });
    expect(new Set([a.id, b.id, c.id]).size).toBe(1);
    expect(await codeOf(dsec.runContainer({ image: 'other', key: 'k1' }))).toBe('KEY_CONFLICT');
    expect(platform.sandboxIds()).toHaveLength(1);
  });

  test('two creates of one key with two bodies at once: one of them conflicts', async () => {
    const codes = await Promise.all(['debian', 'alpine'].map((image) => codeOf(dsec.runContainer({ image, key: 'race' }))));
    expect(codes.sort()).toEqual(['KEY_CONFLICT', 'no error']);
  });

  test.each(['twice', 'late', 'never'] as const)('commits published %s', async (publication) => {
    platform.faults.publish = () => publication;
    const box = await dsec.runContainer({ image: 'debian' });
    expect(box.status).toBe('running');
    expect((await box.stop())?.status).toBe('stopped');
  });

  test('news overtaking each other: the older one does not win', async () => {
    platform.faults.publish = (commit) => (commit.version === 1 ? 'late' : 'once');
    expect((await dsec.runContainer({ image: 'debian' })).status).toBe('running');
  });

  test('an answer that never comes is asked for again with the same key', async () => {
    platform.faults.answer = (name, nth) => (name === 'create' && nth === 1 ? 'done but silent' : 'answer');
    const box = await dsec.runContainer({ image: 'debian' });
    expect(box.status).toBe('running');
    expect(platform.sandboxIds()).toEqual([box.id]);
  });

  test('a refused item follows its newest attempt', async () => {
    platform.faults.refuse = (_, attempt) => attempt < 2;
    expect((await dsec.runContainer({ image: 'debian' })).state?.attempt).toBe(2);
  });

  test('unplaceable, failed and unknown images are typed', async () => {
    platform.faults.refuse = () => true;
    expect(await codeOf(dsec.runContainer({ image: 'debian' }))).toBe('NO_CAPACITY');
    platform.faults.refuse = () => false;
    platform.faults.fail = () => wireError('START_FAILED', 'no /bin/sh in the image');
    expect(await codeOf(dsec.runContainer({ image: 'debian' }))).toBe('START_FAILED');
    expect(await codeOf(dsec.runContainer({ image: 'missing' }))).toBe('IMAGE_NOT_FOUND');
  });

  test('a time-out names the key that goes on waiting, and that key finds the sandbox', async () => {
    platform.faults.answer = (name) => (name === 'request' || name === 'get' ? 'silent' : 'answer');
    platform.faults.publish = () => 'never';
    const error: unknown = await dsec.runContainer({ image: 'debian' }, { timeoutMs: 300 }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED', outcome: 'unknown', retry: 'same' });
    platform.faults.answer = () => 'answer';
    const { key } = (error as DsecError).details as { key: string };
    expect((await dsec.runContainer({ image: 'debian', key })).id).toBe(platform.sandboxIds()[0]);
  });

  test('aborting ends the wait with the key', async () => {
    platform.faults.publish = () => 'never';
    platform.faults.answer = (name) => (name === 'request' ? 'silent' : 'answer');
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 50);
    await expect(dsec.runContainer({ image: 'debian' }, { signal: abort.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
      details: { key: expect.any(String) },
    });
  });
});

describe('a group', () => {
  test('600 in one call, each item once, whatever is lost', async () => {
    let n = 0;
    platform.faults.publish = () => (['once', 'twice', 'never', 'late'] as const)[n++ % 4] ?? 'once';
    const seen: number[] = [];
    const group = await dsec.runContainers({ image: 'debian', key: 'job' }, { count: 600, onItem: ({ index }) => seen.push(index) });
    expect(group.failures).toEqual([]);
    expect(new Set(group.sandboxes.map(({ id }) => id)).size).toBe(600);
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 600 }, (_, i) => i));
    expect(platform.count('create')).toBe(1);
    const again = await dsec.runContainers({ image: 'debian', key: 'job' }, { count: 600 });
    expect(again.sandboxes.map(({ id }) => id)).toEqual(group.sandboxes.map(({ id }) => id));
    expect(await codeOf(dsec.runContainers({ image: 'debian', key: 'job' }, { count: 601 }))).toBe('KEY_CONFLICT');
    platform.faults.publish = () => 'once';
    await group.stopAll();
    for await (const box of dsec.list()) expect(box.status).toBe('stopped');
  });

  test('failures are items, not an exception', async () => {
    platform.faults.fail = (index) => (index % 2 === 1 ? wireError('LAUNCH_FAILED', 'no') : undefined);
    const group = await dsec.runContainers({ image: 'debian' }, { count: 10 });
    expect([group.sandboxes.length, group.failures.map(({ error }) => error.code)]).toEqual([5, Array.from({ length: 5 }, () => 'LAUNCH_FAILED')]);
    expect(() => group.orThrow()).toThrow('no');
    expect(await codeOf(dsec.runContainers({ image: 'missing' }, { count: 300 }))).toBe('IMAGE_NOT_FOUND');
  });

  test('in chunks, too: what failed says so, the rest runs', async () => {
    platform.faults.fail = (index) => (index === 7 ? wireError('LAUNCH_FAILED', 'no') : undefined); // of every chunk
    const group = await dsec.runContainers({ image: 'debian' }, { count: 600 });
    expect(group.failures.map(({ index, error }) => [index, error.code])).toEqual([7, 263, 519].map((index) => [index, 'LAUNCH_FAILED']));
  });

  test('all or nothing: whole, or an exception and nothing made', async () => {
    const whole = await dsec.runContainers({ image: 'debian' }, { count: 3, mode: 'allOrNothing' });
    expect(whole.sandboxes).toHaveLength(3);
    platform.faults.refuse = (index) => index === 2;
    expect(await codeOf(dsec.runContainers({ image: 'debian', key: 'whole' }, { count: 300, mode: 'allOrNothing' }))).toBe('NO_CAPACITY');
    expect(await codeOf(dsec.runContainers({ image: 'debian', key: 'whole' }, { count: 300, mode: 'allOrNothing' }))).toBe('NO_CAPACITY');
    expect(platform.sandboxIds()).toHaveLength(3);
  });
});

describe('commands', () => {
  test('bytes stay bytes, text has whole characters', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const raw = await box.runShell("printf '\\377\\376\\000\\200A'");
    expect([...raw.stdoutBytes]).toEqual([0xff, 0xfe, 0x00, 0x80, 0x41]);
    expect(raw.stdout).toBe('\uFFFD\uFFFD\0\uFFFDA');
    const command = await box.start("printf '\\342'; sleep 0.1; printf '\\202\\254'");
    let text = '';
    for await (const piece of command.stdout.text()) text += piece;
    expect(text).toBe('€');
    expect((await command.wait()).exitCode).toBe(0);
  });

  test('output beyond one answer arrives whole, on both streams', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const result = await box.runShell('seq 1 200000 & seq 1 200000 >&2; wait');
    for (const bytes of [result.stdoutBytes, result.stderrBytes])
      expect(createHash('sha256').update(bytes).digest('hex')).toBe('5af7b95208fdcff454bab3f5eddf567a688a3796c703d4fef91072e38645c062');
    const capped = await box.exec(['seq', '1', '3000'], { outputLimitBytes: 1_024 });
    expect([capped.stdoutBytes.byteLength, capped.truncated, capped.stdoutTotalBytes, capped.exitCode]).toEqual([1_024, true, 13_893, 0]);
  });

  test('streaming reads a long output once, in order', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const command = await box.start(['seq', '1', '600000']);
    const hash = createHash('sha256');
    for await (const chunk of command.stdout) hash.update(chunk);
    expect(hash.digest('hex')).toBe(
      createHash('sha256')
        .update((await command.result()).stdoutBytes)
        .digest('hex'),
    );
  });

  test('stdin: none, empty, inline, larger than a message, left unread, written piece by piece', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    expect((await box.exec(['wc', '-c'])).stdout.trim()).toBe('0');
    expect((await box.exec(['cat'], { stdin: '' })).stdout).toBe('');
    expect((await box.exec(['cat'], { stdin: 'abc' })).stdout).toBe('abc');
    const zeros = new Uint8Array(3 * 1024 * 1024);
    expect((await box.exec(['sha256sum'], { stdin: zeros })).stdout.slice(0, 64)).toBe(createHash('sha256').update(zeros).digest('hex'));
    expect((await box.exec(['head', '-c', '1'], { stdin: zeros })).stdoutBytes.byteLength).toBe(1);
    const cat = await box.start(['cat'], { stdin: 'open' });
    await cat.stdin.write('x');
    await cat.stdin.write('');
    await cat.stdin.write('y');
    await cat.stdin.close();
    expect((await cat.result()).stdout).toBe('xy');
    expect(await codeOf(cat.stdin.write('z'))).toBe('STDIN_CLOSED');
  });

  test('ends: exit code, signal, time-out, kill', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    expect(await box.runShell('exit 7')).toMatchObject({ exitCode: 7, signal: null, reason: 'exited', ok: false });
    expect(await box.runShell('kill -TERM $$')).toMatchObject({ exitCode: 143, signal: 'TERM', reason: 'signaled' });
    expect(await box.exec(['sleep', '30'], { timeoutMs: 50 })).toMatchObject({ reason: 'timeout', ok: false });
    const sleeper = await box.start(['sleep', '30']);
    expect(await sleeper.kill()).toBe(true);
    expect(await sleeper.wait()).toMatchObject({ exitCode: 137, signal: 'KILL' });
    expect((await box.commands()).map(({ state }) => state)).toEqual(['ended', 'ended', 'ended', 'ended']);
  });

  test('aborting kills the command and says so', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 50);
    await expect(box.exec(['sleep', '30'], { signal: abort.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
      details: { execId: expect.stringMatching(/^ex-/) },
    });
    await expect.poll(async () => (await box.commands())[0]?.state).toBe('ended');
  });

  test('a command outlives its client: another attaches and gets every byte', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const { execId } = await box.start('echo one; sleep 0.1; echo two', { key: 'build' });
    await using other = await connect({ servers: server.url, project: PROJECT });
    const command = other.attach(box.id, execId);
    expect(await command.stdout.string()).toBe('one\ntwo\n');
    expect(await codeOf(other.attach(box.id, `ex-${'0'.repeat(24)}`).wait())).toBe('EXEC_NOT_FOUND');
  });
});

describe('restarts', () => {
  test('while nobody listens, calls wait; a command runs once although its answer was lost', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    platform.faults.answer = (name, nth) => (name === 'exec' && nth === 1 ? 'done but silent' : 'answer');
    const result = box.runShell('echo once');
    await expect.poll(() => platform.count('exec')).toBe(1);
    await platform.deafen();
    const stopped = box.refresh();
    platform.listen();
    expect((await result).stdout).toBe('once\n');
    expect((await stopped).status).toBe('running');
    expect(platform.commands.started).toBe(1);
  });

  test('a killed bus comes back: what was in flight is asked again at once', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    const running = box.runShell('sleep 0.5; echo survived');
    await expect.poll(() => platform.count('exec')).toBe(1);
    await server.restart();
    expect((await running).stdout).toBe('survived\n');
    expect(platform.commands.started).toBe(1);
    expect((await box.stop())?.status).toBe('stopped');
  });
});

describe('life cycle and looking', () => {
  test('pause and resume reach their states; a failed snapshot is a typed error', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    await box.pause();
    expect(box.status).toBe('paused');
    await box.resume();
    expect(box.status).toBe('running');
    expect(await codeOf(box.snapshot())).toBe('NOT_SUPPORTED');
    platform.faults.publish = () => 'never';
    expect(await codeOf(box.snapshot())).toBe('NOT_SUPPORTED');
    expect((await box.extend({ ttlTotal: 600, ttlRunningStop: null })).decision).toBe('accepted');
  });

  test('stopping twice is fine; what never was is not found', async () => {
    const box = await dsec.runContainer({ image: 'debian' });
    await box.stop();
    expect((await box.stop())?.status).toBe('stopped');
    expect(await codeOf(box.exec(['true']))).toBe('SANDBOX_ENDED');
    expect(await codeOf(dsec.get(`sb-0-${'0'.repeat(20)}-node-1`))).toBe('SANDBOX_NOT_FOUND');
    expect(await codeOf(dsec.get('nonsense'))).toBe('INVALID_ARGUMENT');
  });

  test('list pages through labels and states', async () => {
    await dsec.runContainers({ image: 'debian', labels: { team: 'a' } }, { count: 5 });
    await dsec.runContainers({ image: 'debian', labels: { team: 'b' } }, { count: 2 });
    const ids = async (options: Parameters<DsecClient['list']>[0]): Promise<number> => {
      const found = new Set<string>();
      for await (const box of dsec.list(options)) found.add(box.id);
      return found.size;
    };
    expect([await ids({ labels: { team: 'a' }, pageSize: 2 }), await ids({ status: 'running' }), await ids({ status: ['stopped'] })]).toEqual([5, 7, 0]);
  });

  test('events: each commit once and in order, lost ones filled in, until the end', async () => {
    let n = 0;
    platform.faults.publish = () => (['once', 'never', 'twice', 'late'] as const)[n++ % 4] ?? 'once';
    const box = await dsec.runContainer({ image: 'debian' });
    const versions: number[] = [];
    const following = (async () => {
      for await (const commit of box.events({ follow: true })) versions.push(commit.version);
    })();
    await box.pause();
    await box.resume();
    await box.stop();
    await following;
    expect(versions).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe('connecting', () => {
  test('no server, no apiserver', async () => {
    expect(await codeOf(connect({ servers: ['127.0.0.1:1'], project: PROJECT, timeoutMs: 100 }))).toBe('BUS_UNAVAILABLE');
    await platform.deafen();
    await expect(connect({ servers: [server.url], project: PROJECT, timeoutMs: 2_000 })).rejects.toMatchObject({
      code: 'API_UNAVAILABLE',
      outcome: 'not_applied',
    });
  });
});
