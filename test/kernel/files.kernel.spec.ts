/** The file service over a real Aether: sessions by offset, repetitions, bounds; and that a worker is nobody's to touch. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import { DsecError } from '#bus/errors.ts';
import { FILE_OPS, type FileOpName } from '#bus/op/files.ts';
import type { OpParsed, OpRequest, OpResponse } from '#bus/op/schema.ts';
import { FILES_LIMITS } from '#runtime/files/limits.ts';
import { FileService } from '#runtime/files/service.ts';
import { SessionBudget } from '#runtime/files/sessions.ts';
import { refusal } from '#test/helpers/refusal.ts';
import { type Stand, startAether } from './aether-stand.ts';
import { ChronusUnderTest } from './chronus-under-test.ts';

const CHUNK = 262_144;
let stand: Stand;
let service: FileService;
let dir: string;

const serviceOf = (socketPath: string, budget = new SessionBudget()): FileService =>
  new FileService({ socketPath, defaultUser: 'root', budget, clock: systemClock, onActivity: () => undefined });

beforeAll(async () => {
  stand = await startAether();
  service = serviceOf(stand.socketPath);
  dir = join(stand.dir, 'files');
  await call('fileMkdir', { key: 'dir', path: dir });
});
afterAll(async () => {
  service?.close();
  await stand?.stop();
});

const call = async <O extends FileOpName>(
  op: O,
  request: Omit<OpRequest<O>, 'v'>,
  body: Uint8Array = new Uint8Array(0),
  by: FileService = service,
): Promise<{ data: OpResponse<O>; body: Buffer }> => {
  const parsed = FILE_OPS[op].request.parse({ v: 1, ...request }) as OpParsed<O>;
  const answer = await by.handle(op, parsed, body);
  return { data: answer.data, body: Buffer.concat(answer.body) };
};
const open = (session: string, stream: OpRequest<'fileOpen'>['stream']) => call('fileOpen', { session, stream } as Omit<OpRequest<'fileOpen'>, 'v'>);
const code = async (work: Promise<unknown>): Promise<string> => (await refusal(work)).code;

describe('an upload by offset', () => {
  test('chunks repeated, overlapping and ahead of others are taken once and in order', async () => {
    const content = Buffer.from(Array.from({ length: 1_000 }, (_, i) => i % 251));
    const path = join(dir, 'up');
    await open('up', { what: 'write', path });
    await open('up', { what: 'write', path }); // the answer to the first one was lost
    const push = async (from: number, to: number) => (await call('filePush', { session: 'up', offset: from }, content.subarray(from, to))).data.nextOffset;
    expect(await push(0, 300)).toBe(300);
    expect(await push(0, 300)).toBe(300);
    expect(await push(500, 600)).toBe(300);
    expect(await push(200, 500)).toBe(500);
    expect(await code(call('fileCommit', { session: 'up', totalBytes: 1_000 }))).toBe('INVALID_ARGUMENT');
    expect(await push(500, 1_000)).toBe(1_000);
    const [first, second] = await Promise.all([
      call('fileCommit', { session: 'up', totalBytes: 1_000 }),
      call('fileCommit', { session: 'up', totalBytes: 1_000 }),
    ]);
    expect(first.data).toEqual(second.data);
    expect((await call('fileCommit', { session: 'up', totalBytes: 1_000 })).data).toEqual(first.data);
    expect(first.data.entry?.size).toBe(1_000);
    expect(await push(0, 1_000)).toBe(1_000);
    expect(await code(push(1_000, 1_000).then(() => call('filePull', { session: 'up', offset: 0, ack: 0 })))).toBe('INVALID_ARGUMENT');
    expect(readFileSync(path).equals(content)).toBe(true);
    await call('fileClose', { session: 'up' });
    expect(await code(push(0, 1))).toBe('FILE_SESSION_LOST');
    await call('fileClose', { session: 'up' });
  });

  test('a short write under one key is one write', async () => {
    const path = join(dir, 'keyed');
    const request = { key: 'w', path };
    await Promise.all(Array.from({ length: 10 }, () => call('fileWrite', request, Buffer.from('once'))));
    writeFileSync(path, 'somebody else');
    await call('fileWrite', request, Buffer.from('once'));
    expect(readFileSync(path, 'utf8')).toBe('somebody else');
    await call('fileWrite', request, Buffer.from('another body is another write'));
    expect(readFileSync(path, 'utf8')).toBe('another body is another write');
  });

  test('a failed one may be tried again under its key', async () => {
    const request = { key: 'm', path: join(dir, 'a/b') };
    expect(await code(call('fileMkdir', request))).toBe('FILE_NOT_FOUND');
    await call('fileMkdir', { key: 'n', path: join(dir, 'a') });
    expect((await call('fileMkdir', request)).data.entry.type).toBe('directory');
  });
});

describe('a download by offset', () => {
  test('chunks may be asked for again until they are acknowledged, in any order within the window', async () => {
    const path = join(dir, 'down');
    const content = Buffer.from(Array.from({ length: 5 * CHUNK + 7 }, (_, i) => (i * 31) % 256));
    writeFileSync(path, content);
    await open('down', { what: 'read', path });
    const pull = (offset: number, ack: number) => call('filePull', { session: 'down', offset, ack });
    const answers = await Promise.all([2, 0, 1, 1].map((n) => pull(n * CHUNK, 0)));
    expect(answers.map(({ body }) => body.byteLength)).toEqual([CHUNK, CHUNK, CHUNK, CHUNK]);
    expect(answers[0]?.body.equals(content.subarray(2 * CHUNK, 3 * CHUNK))).toBe(true);
    expect((await pull(0, 0)).body.equals(content.subarray(0, CHUNK))).toBe(true);
    const odd = await call('filePull', { session: 'down', offset: 100, ack: 0, maxBytes: 50, minBytes: 50 });
    expect(odd.body.equals(content.subarray(100, 150))).toBe(true);
    expect((await pull(3 * CHUNK, 2 * CHUNK)).body.byteLength).toBe(CHUNK);
    expect(await code(pull(0, 0))).toBe('INVALID_ARGUMENT');
    expect(await code(pull(20 * CHUNK, 2 * CHUNK))).toBe('LIMIT_OUT_OF_RANGE');
    const last = await pull(5 * CHUNK, 4 * CHUNK);
    expect([last.body.byteLength, last.data.end]).toEqual([7, { bytes: content.byteLength, entries: 1, omittedCount: 0, omitted: [] }]);
    expect((await pull(5 * CHUNK, 4 * CHUNK)).data.end).not.toBeNull();
    expect((await call('filePull', { session: 'down', offset: content.byteLength, ack: content.byteLength })).data.end).not.toBeNull();
    await call('fileClose', { session: 'down' });
  });

  test('what cannot be opened leaves no session', async () => {
    for (let i = 0; i < 2 * FILES_LIMITS.sessionsPerSandbox; i += 1)
      expect(await code(open(`no-${i}`, { what: 'read', path: join(dir, 'nothing') }))).toBe('FILE_NOT_FOUND');
    expect(await code(call('filePull', { session: 'no-0', offset: 0, ack: 0 }))).toBe('FILE_SESSION_LOST');
  });
});

describe('bounds', () => {
  test('sessions of one sandbox, and of the whole node', async () => {
    const budget = new SessionBudget();
    const one = serviceOf(stand.socketPath, budget);
    const openMany = async (by: FileService, count: number) => {
      for (let i = 0; i < count; i += 1) await call('fileOpen', { session: `s-${i}`, stream: { what: 'watch', path: dir } }, undefined, by);
    };
    await openMany(one, FILES_LIMITS.sessionsPerSandbox);
    expect(await code(openMany(one, FILES_LIMITS.sessionsPerSandbox + 1))).toBe('OVERLOADED');
    for (let i = FILES_LIMITS.sessionsPerSandbox; i < FILES_LIMITS.sessionsPerEdge; i += 1) budget.take();
    const other = serviceOf(stand.socketPath, budget);
    expect(await code(openMany(other, 1))).toBe('OVERLOADED');
    await call('fileClose', { session: 's-0' }, undefined, one);
    await openMany(other, 1);
    const lost = refusal(call('filePull', { session: 's-1', offset: 100, ack: 0, waitMs: 10_000 }, undefined, one));
    one.close();
    other.close();
    expect((await lost).code).toBe('EDGE_UNAVAILABLE');
  });

  test('a sandbox that is gone is said to be', async () => {
    const short = await startAether();
    const files = serviceOf(short.socketPath);
    await call('fileStat', { path: '/' }, undefined, files);
    await short.kill();
    await expect.poll(() => code(call('fileStat', { path: '/' }, undefined, files))).toBe('SANDBOX_ENDED');
    files.close();
    await short.stop();
  });

  test.each(['v2', 'none'] as const)('a pids limit that is used up is no silence (cgroups: %s)', async (cgroups) => {
    const tight = await startAether({ pids: 3, cgroups });
    const chronus = new ChronusUnderTest(tight);
    await chronus.chronus.attach();
    const sleep = (n: number) => chronus.call('exec', { key: `s${n}`, argv: ['/bin/sleep', '60'], waitMs: 0 });
    const { execId } = (await sleep(0)).data.exec;
    for (let n = 1; n < 3; n += 1) await sleep(n);
    const files = serviceOf(tight.socketPath);
    expect([await code(sleep(3)), await code(call('fileStat', { path: '/' }, undefined, files))]).toEqual(['PIDS_LIMIT', 'PIDS_LIMIT']);
    await chronus.call('signal', { execId, signal: 'KILL', tree: true });
    await chronus.wait(execId);
    expect((await call('fileStat', { path: '/' }, undefined, files)).data.entry.type).toBe('directory');
    files.close();
    chronus.chronus.close();
    await tight.stop();
  });
});

describe('beside commands', () => {
  test('workers that come and go take nothing from the channel of the commands', async () => {
    const chronus = new ChronusUnderTest(stand);
    await chronus.chronus.attach();
    const commands = Array.from({ length: 20 }, (_, i) => chronus.exec(`sleep 0.${i % 10}; echo ${i}`));
    const looks = Array.from({ length: 100 }, (_, i) => call('fileStat', { path: '/', user: i % 2 ? 'root' : `${1_000 + (i % 7)}` }));
    expect((await Promise.all(commands)).map(({ stdout }) => stdout.toString())).toEqual(Array.from({ length: 20 }, (_, i) => `${i}\n`));
    expect((await Promise.all(looks)).length).toBe(100);
    chronus.chronus.close();
  });

  test('root inside can neither read nor trace a worker', async () => {
    await open('held', { what: 'watch', path: dir });
    const chronus = new ChronusUnderTest(stand);
    await chronus.chronus.attach();
    const probe = `
import os, ctypes, glob
mine = os.getpid()
found = [p for p in map(int, filter(str.isdigit, os.listdir('/proc'))) if p not in (1, mine) and open(f'/proc/{p}/comm').read().startswith('aether')]
libc = ctypes.CDLL(None, use_errno=True)
for pid in found:
    for name in ('mem', 'environ', 'maps', 'auxv', 'stack', 'syscall'):
        try: open(f'/proc/{pid}/{name}', 'rb').read(1); print('read', name)
        except OSError: pass
    for name in ('fd', 'map_files', 'root', 'cwd', 'exe'):
        try: (os.listdir if name in ('fd', 'map_files') else os.readlink)(f'/proc/{pid}/{name}'); print('saw', name)
        except OSError: pass
    if libc.ptrace(16, pid, 0, 0) == 0: print('traced')
print(len(found))`;
    const { stdout, stderr } = await chronus.exec(['/usr/bin/python3', '-c', probe], { key: 'probe' });
    expect([stdout.toString(), stderr.toString()]).toEqual([expect.stringMatching(/^[1-9]\d*\n$/), '']);
    chronus.chronus.close();
    await call('fileClose', { session: 'held' });
  });

  test('a worker reads nothing of itself or of the agent for its caller', async () => {
    for (const path of ['/proc/self/mem', '/proc/self/environ', '/proc/self/exe', '/proc/1/mem', '/proc/1/environ', '/proc/1/exe', '/proc/1/root/etc/passwd'])
      expect(['PERMISSION_DENIED', 'FILE_NOT_FOUND'], path).toContain(await code(call('fileRead', { path })));
    for (const path of ['/proc/self/fd/3', '/proc/self/fd/4'])
      expect(['NOT_REGULAR', 'FILE_NOT_FOUND'], path).toContain(await code(call('fileRead', { path })));
  });

  test('nonsense ends a worker, and nothing else', async () => {
    const before = execFileSync('ps', ['-o', 'rss=', '-p', String(stand.pid)]).toString();
    for (let round = 0; round < 30; round += 1) {
      const socket = createConnection({ path: stand.socketPath });
      const closed = new Promise<void>((resolve) => socket.on('error', () => undefined).on('close', () => resolve()));
      const body = Buffer.from('user=root\0');
      const header = Buffer.alloc(16);
      header.writeUInt32LE(body.byteLength, 0);
      header.writeUInt16LE(16, 4);
      header.writeUInt32LE(1, 8);
      socket.write(Buffer.concat([header, body]));
      await once(socket, 'data');
      const noise = Buffer.from(Array.from({ length: 64 }, (_, i) => (i * 37 + round * 11) % 256));
      noise.writeUInt32LE(round % 2 ? 40 : 0xffffff, 0);
      noise.writeUInt16LE(32 + (round % 24), 4);
      noise.writeUInt16LE(0, 6);
      socket.end(noise);
      socket.resume();
      await closed;
    }
    expect((await call('fileStat', { path: '/' })).data.entry.type).toBe('directory');
    expect(Number(execFileSync('ps', ['-o', 'rss=', '-p', String(stand.pid)]).toString())).toBeLessThan(Number(before) + 256);
  });
});

test('a refusal is always one of the registry', async () => {
  const thrown = await call('fileStat', { path: '/no/such' }).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(DsecError);
});
